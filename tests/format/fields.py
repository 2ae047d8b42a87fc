"""The numbers that everything is made of (FORMAT.md, the part before section 1)."""

from __future__ import annotations

VERSION = 1
U64 = 2**64


class MalformedError(Exception):
    """The bytes do not follow the format."""


class NoLogError(Exception):
    """The directory is not a log."""


class NewerError(Exception):
    """A newer edgelog wrote this, and guessing would be worse than stopping."""


class Cursor:
    """Takes fields from the front of some bytes."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data = data
        self.at = at

    def more(self) -> bool:
        return self.at < len(self.data)

    def take(self, count: int) -> bytes:
        if count > len(self.data) - self.at:
            raise MalformedError("a field goes on behind the end")
        self.at += count
        return self.data[self.at - count : self.at]

    def uint(self, size: int) -> int:
        return int.from_bytes(self.take(size), "little")

    def varint(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self.uint(1)
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
        else:
            raise MalformedError("a varint of more than ten bytes")
        if value >= U64:
            raise MalformedError("a varint of more than 64 bits")
        return value

    def svarint(self) -> int:
        value = self.varint()
        return (value >> 1) ^ -(value & 1)
