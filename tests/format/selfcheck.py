"""Checks of the reader that need no engine: known sums and numbers, and what must not pass."""

from __future__ import annotations

import random
import zlib

import craft
from fields import U64, Cursor, MalformedError
from segments import RECORDS, Segment, frame_at, records_of


def refused(data: bytes) -> bool:
    try:
        Cursor(data).varint()
    except MalformedError:
        return True
    return False


def crc() -> None:
    assert zlib.crc32(b"123456789") == 0xCBF43926
    assert zlib.crc32(b"6789", zlib.crc32(b"12345")) == 0xCBF43926


def varints() -> None:
    known = {0: "00", 1: "01", 127: "7f", 128: "8001", 300: "ac02", 16384: "808001"}
    known[U64 - 1] = "ff" * 9 + "01"
    for value, digits in known.items():
        assert Cursor(bytes.fromhex(digits)).varint() == value
        assert craft.varint(value).hex() == digits
    chance = random.Random(1)
    for _ in range(1000):
        value = chance.randrange(2 ** chance.randrange(1, 65))
        cursor = Cursor(craft.varint(value) + b"\x55")
        assert (cursor.varint(), cursor.take(1)) == (value, b"\x55")
    for bad in ["", "80", "ff" * 10, "80" * 10 + "00", "ff" * 9 + "02"]:
        assert refused(bytes.fromhex(bad)), bad


def svarints() -> None:
    known = {0: "00", -1: "01", 1: "02", -2: "03", 2: "04", 63: "7e", -64: "7f", 64: "8001"}
    known |= {2**63 - 1: "fe" + "ff" * 8 + "01", -(2**63): "ff" * 9 + "01"}
    for value, digits in known.items():
        assert Cursor(bytes.fromhex(digits)).svarint() == value


def frames() -> None:
    """A frame passes at its own place in its own segment, whole and unchanged, only."""
    body = craft.records_body(0, [craft.Row(b"value", b"key"), craft.Row(b"", skip=3)])
    frame = craft.frame(7, 100, RECORDS, body)
    segment = Segment("", 0, 0, 0, bytes(100) + frame, 7, None)
    found = frame_at(segment, 100)
    assert found is not None
    assert [record.offset for record in records_of(RECORDS, Cursor(found.body), 50)] == [50, 54]
    other_place = Segment("", 0, 0, 0, bytes(101) + frame, 7, None)
    assert frame_at(other_place, 101) is None
    other_segment = Segment("", 0, 0, 0, bytes(100) + frame, 8, None)
    assert frame_at(other_segment, 100) is None
    for length in range(len(frame)):
        assert frame_at(Segment("", 0, 0, 0, segment.data[: 100 + length], 7, None), 100) is None
    for bit in range(len(frame) * 8):
        data = bytearray(segment.data)
        data[100 + bit // 8] ^= 1 << bit % 8
        assert frame_at(Segment("", 0, 0, 0, bytes(data), 7, None), 100) is None
    assert frame_at(Segment("", 0, 0, 0, bytes(200), 0, None), 0) is None


CHECKS = [crc, varints, svarints, frames]
