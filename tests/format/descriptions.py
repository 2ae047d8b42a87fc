"""The description files LOG, TOPIC and CHECKPOINT (FORMAT.md, section 2)."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from pathlib import Path

from fields import VERSION, Cursor, NewerError

SETTINGS = {
    1: "durability",
    2: "when_full",
    3: "linger_ms",
    4: "sync_interval_ms",
    5: "buffer_bytes",
    6: "segment_bytes",
    7: "max_bytes",
    8: "max_age_ms",
    9: "min_records",
    10: "compaction_keys_max",
    11: "min_garbage_percent",
    12: "tombstone_ms",
    13: "compact_trigger_bytes",
    14: "hold_for_groups",
}
KEEP_KINDS = ("all", "last", "for", "nothing")


@dataclass
class Topic:
    folder: str
    name: str
    identity: int
    partitions: int
    options: dict[str, int] | None
    # Each a prefix in hexadecimal digits, what is kept, and the number that goes with it.
    rules: list[tuple[str, str, int]] | None
    source: str


@dataclass
class Checkpoint:
    identity: int
    running_ms: int
    since_boot_ms: int
    boot: str
    partitions: list[tuple[int, int]]


def copy_at(data: bytes, start: int, magic: bytes) -> bytes | None:
    """The body of the block at this byte, if its sum is right."""
    head = data[start : start + 16]
    if len(head) < 16 or head[:8] != magic:
        return None
    version, length = struct.unpack("<II", head[8:])
    end = start + 16 + length
    if len(data) < end + 4 or zlib.crc32(data[start:end]) != Cursor(data, end).uint(4):
        return None
    if version != VERSION:
        raise NewerError(f"{magic.decode()} has version {version}")
    return data[start + 16 : end]


def description(path: Path, magic: bytes) -> Cursor | None:
    """The body of the first copy that is right; None when the file is missing or damaged."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    body = copy_at(data, 0, magic)
    if body is None:
        body = copy_at(data, len(data) // 2, magic)
    return None if body is None else Cursor(body)


def read_topic(folder: Path) -> Topic | None:
    body = description(folder / "TOPIC", b"EDGETOP1")
    if body is None:
        return None
    identity, partitions = body.uint(8), body.uint(4)
    name = body.take(body.uint(1)).decode()
    options = {}
    for _ in range(body.uint(2)):
        tag, value = body.uint(2), body.uint(8)
        if tag in SETTINGS:
            options[SETTINGS[tag]] = value
        elif tag >= 0x8000:
            raise NewerError(f"topic {name!r} has the setting {tag:#x}")
    rules = [rule_of(body) for _ in range(body.uint(2))]
    return Topic(folder.name, name, identity, partitions, options, rules, "TOPIC")


def rule_of(body: Cursor) -> tuple[str, str, int]:
    prefix = body.take(body.uint(1)).hex()
    kind, value = body.uint(1), body.uint(8)
    if kind >= len(KEEP_KINDS):
        return prefix, "all", 0
    return prefix, KEEP_KINDS[kind], value


def read_checkpoint(folder: Path, topic: Topic) -> Checkpoint | None:
    """The checkpoint, if it is one of this topic. It is advice only: nothing stops at it."""
    try:
        body = description(folder / "CHECKPOINT", b"EDGECKP1")
    except NewerError:
        return None
    if body is None:
        return None
    identity, running_ms, since_boot_ms = body.uint(8), body.uint(8), body.uint(8)
    boot, count = f"{body.uint(16):032x}", body.uint(4)
    ends = [(body.uint(8), body.uint(8)) for _ in range(count)]
    if identity != topic.identity or count != topic.partitions:
        return None
    return Checkpoint(identity, running_ms, since_boot_ms, boot, ends)
