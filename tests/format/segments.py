"""Segments and their frames (FORMAT.md, sections 3 and 4)."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from fields import U64, VERSION, Cursor, MalformedError, NewerError

RECORDS, TRUSTED_RECORDS, FOOTER, CLOCK = 0x01, 0x81, 2, 3
JOURNAL_KINDS = (4, 5, 6)
KEY, VALUE, HEADERS, TIME, SKIP = 1, 2, 4, 8, 16


@dataclass
class Header:
    partition: int
    identity: int
    base: int
    generation: int
    partitions: int
    wall_ms: int
    running_ms: int
    since_boot_ms: int
    boot: str
    name: str


@dataclass
class Footer:
    next: int
    records: int
    tombstones: int
    lowest: int
    highest: int
    running_s: int
    index: list[tuple[int, int, int]]


@dataclass
class Clock:
    position: int
    running_ms: int
    since_boot_ms: int
    boot: str


@dataclass
class Record:
    offset: int
    timestamp: int
    trusted: bool
    key: bytes | None
    value: bytes | None
    headers: list[tuple[bytes, bytes]]


@dataclass
class Frame:
    position: int
    kind: int
    body: bytes

    @property
    def end(self) -> int:
        return self.position + 8 + len(self.body)


@dataclass
class Segment:
    file: str
    partition: int
    base: int
    generation: int
    data: bytes
    seed: int
    header: Header | None
    footer: Footer | None = None
    state: str = ""
    clocks: list[Clock] = field(default_factory=list)

    def belongs(self, identity: int) -> bool:
        """Whether the header tells the topic and the name of the file that it is in."""
        if self.header is None:
            return False
        header = self.header
        told = (header.identity, header.partition, header.base, header.generation)
        return told == (identity, self.partition, self.base, self.generation)


def read_header(data: bytes) -> Header | None:
    """The header, if its sum is right."""
    if len(data) < 87 or data[:8] != b"EDGESEG1":
        return None
    end = 83 + data[82]
    if len(data) < end + 4 or zlib.crc32(data[:end]) != Cursor(data, end).uint(4):
        return None
    fields = Cursor(data, 8)
    if fields.uint(4) != VERSION:
        raise NewerError("a segment has another version")
    partition, identity, base, generation = (fields.uint(size) for size in (4, 8, 8, 4))
    partitions, wall, running, since_boot = (fields.uint(size) for size in (4, 8, 8, 8))
    boot = f"{fields.uint(16):032x}"
    name = data[83:end].decode()
    return Header(
        partition, identity, base, generation, partitions, wall, running, since_boot, boot, name
    )


def frame_at(segment: Segment, position: int) -> Frame | None:
    """The frame at this byte, if its sum is right."""
    if len(segment.data) < position + 8:
        return None
    total, word = struct.unpack_from("<II", segment.data, position)
    kind, end = word >> 24, position + 8 + (word & 0xFFFFFF)
    if kind not in (RECORDS, TRUSTED_RECORDS, FOOTER, CLOCK, *JOURNAL_KINDS):
        return None
    if end == position + 8 or end > len(segment.data):
        return None
    high, low = position >> 32, position % 2**32
    start = segment.seed ^ low ^ (high << 16 | high >> 16) % 2**32
    if zlib.crc32(segment.data[position + 4 : end], start) != total:
        return None
    return Frame(position, kind, segment.data[position + 8 : end])


def records_of(kind: int, body: Cursor, base: int) -> Iterator[Record]:
    """The records of a frame one by one, so that those before a bad byte are still told."""
    offset, wall = base + body.varint(), body.varint()
    body.varint()  # The running time serves retention only.
    while body.more():
        has = body.uint(1)
        if has & ~(KEY | VALUE | HEADERS | TIME | SKIP) or not has & (KEY | VALUE):
            raise MalformedError("the attributes of a record")
        wall = (wall + body.svarint()) % U64 if has & TIME else wall
        timestamp = wall
        offset += body.varint() if has & SKIP else 0
        key_length = body.varint() if has & KEY else None
        value_length = body.varint() if has & VALUE else None
        key = None if key_length is None else body.take(key_length)
        value = None if value_length is None else body.take(value_length)
        headers = headers_of(body) if has & HEADERS else []
        yield Record(offset, timestamp, kind == TRUSTED_RECORDS, key, value, headers)
        offset += 1


def headers_of(body: Cursor) -> list[tuple[bytes, bytes]]:
    count = body.varint()
    if not 1 <= count <= 255:
        raise MalformedError("the number of headers")
    headers = []
    for _ in range(count):
        name_length, value_length = body.varint(), body.varint()
        headers.append((body.take(name_length), body.take(value_length)))
    return headers


def footer_of(frame: Frame, base: int) -> Footer:
    body = Cursor(frame.body)
    next_offset = base + body.varint()
    records, tombstones, lowest, highest, running = (body.varint() for _ in range(5))
    index = []
    offset, position = base, 0
    for _ in range(body.varint()):
        offset, position = offset + body.varint(), position + body.varint()
        index.append((offset, position, body.varint()))
    if body.uint(4) != 8 + len(frame.body) or body.more():
        raise MalformedError("the length at the end of a footer")
    return Footer(next_offset, records, tombstones, lowest, highest, running, index)


def clock_of(frame: Frame) -> Clock:
    body = Cursor(frame.body)
    clock = Clock(frame.position, body.uint(8), body.uint(8), f"{body.uint(16):032x}")
    if body.more():
        raise MalformedError("the length of a clock")
    return clock


def last_footer(segment: Segment) -> Footer | None:
    """The footer that the file ends in: what makes a segment a sealed one."""
    size = len(segment.data)
    if size < 12:
        return None
    position = size - Cursor(segment.data, size - 4).uint(4)
    frame = frame_at(segment, position) if position >= 0 else None
    if frame is None or frame.kind != FOOTER or frame.end != size:
        return None
    try:
        return footer_of(frame, segment.base)
    except MalformedError:
        return None


def seed_of(identity: int, partition: int, base: int, generation: int) -> int:
    return zlib.crc32(struct.pack("<QIQI", identity, partition, base, generation))
