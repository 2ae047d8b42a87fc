"""Makes bytes of the format by hand, for what the engine does not write by itself."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

from segments import CLOCK, FOOTER, KEY, RECORDS, SKIP, VALUE, Segment


def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def description(magic: bytes, body: bytes, version: int = 1) -> bytes:
    block = magic + struct.pack("<II", version, len(body)) + body
    return (block + struct.pack("<I", zlib.crc32(block))) * 2


def topic(
    identity: int,
    name: str,
    settings: dict[int, int],
    rules: tuple[tuple[bytes, int, int], ...] = (),
) -> bytes:
    """A topic with one partition. A rule is a prefix, a kind and a value."""
    encoded = name.encode()
    body = struct.pack("<QIB", identity, 1, len(encoded)) + encoded
    body += struct.pack("<H", len(settings))
    body += b"".join(struct.pack("<HQ", tag, value) for tag, value in settings.items())
    body += struct.pack("<H", len(rules))
    for prefix, kind, value in rules:
        body += bytes([len(prefix)]) + prefix + struct.pack("<BQ", kind, value)
    return description(b"EDGETOP1", body)


def checkpoint(identity: int, ends: list[tuple[int, int]], version: int = 1) -> bytes:
    body = struct.pack("<QQQQQI", identity, 0, 0, 0, 0, len(ends))
    body += b"".join(struct.pack("<QQ", *end) for end in ends)
    return description(b"EDGECKP1", body, version)


def header(
    segment: Segment, partitions: int, name: bytes, identity: int, version: int = 1
) -> bytes:
    fields = struct.pack("<IIQQ", version, segment.partition, identity, segment.base)
    fields += struct.pack("<IIQQQQQ", segment.generation, partitions, 0, 0, 0, 0, 0)
    data = b"EDGESEG1" + fields + bytes([0, 0, len(name)]) + name
    return data + struct.pack("<I", zlib.crc32(data))


def frame(seed: int, position: int, kind: int, body: bytes) -> bytes:
    high, low = divmod(position, 2**32)
    start = seed ^ low ^ (high << 16 | high >> 16) % 2**32
    covered = struct.pack("<I", kind << 24 | len(body)) + body
    return struct.pack("<I", zlib.crc32(covered, start)) + covered


@dataclass
class Row:
    """A record with a value, and perhaps a key."""

    value: bytes
    key: bytes | None = None
    skip: int = 0


def records_body(first: int, rows: list[Row], wall_ms: int = 1_700_000_000_000) -> bytes:
    """`first` is the first offset less the base."""
    body = varint(first) + varint(wall_ms) + varint(0)
    for row in rows:
        has = VALUE | (KEY if row.key is not None else 0) | (SKIP if row.skip else 0)
        body += bytes([has]) + (varint(row.skip) if row.skip else b"")
        body += varint(len(row.key)) if row.key is not None else b""
        body += varint(len(row.value)) + (row.key or b"") + row.value
    return body


def footer_body(next_offset: int, records: int, wall_ms: int = 1_700_000_000_000) -> bytes:
    """`next_offset` is less the base. Without an index: a reader then starts at the front."""
    lowest, highest = (wall_ms, wall_ms) if records else (2**64 - 1, 0)
    numbers = [next_offset, records, 0, lowest, highest, 0, 0]
    body = b"".join(map(varint, numbers))
    return body + struct.pack("<I", 8 + len(body) + 4)


class Writer:
    """Puts frames behind what a segment has."""

    def __init__(self, segment: Segment, data: bytes) -> None:
        self.segment = segment
        self.data = data

    def add(self, kind: int, body: bytes) -> Writer:
        self.data += frame(self.segment.seed, len(self.data), kind, body)
        return self

    def records(self, offset: int, *rows: Row) -> Writer:
        return self.add(RECORDS, records_body(offset - self.segment.base, list(rows)))

    def footer(self, next_offset: int, records: int) -> Writer:
        return self.add(FOOTER, footer_body(next_offset - self.segment.base, records))

    def clock(self) -> Writer:
        return self.add(CLOCK, struct.pack("<QQQQ", 5_000, 4_000, 3, 2))
