"""What a run left: the journals of the actors, what the driver did to them, and the log itself."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import edgelog
from groups import DEAD, ORDERS, read_groups
from orders import read_orders

HERE = Path(__file__).resolve().parent

# Topics of which a compaction removes records.
COMPACTED = "compact-"


@dataclass(frozen=True)
class Ack:
    """An append that was acknowledged."""

    tag: str
    topic: str
    partition: int
    offset: int
    count: int
    durability: str
    # The process said later that what it had buffered went out.
    is_out: bool

    def tags(self) -> list[str]:
        return [f"{self.tag}/{i}/{self.count}" for i in range(self.count)]


@dataclass(frozen=True)
class Try:
    """An append to a compacted topic that was begun. A key has a "!" before it for a tombstone."""

    partition: int
    start_ns: int
    keys: tuple[str, ...]


@dataclass(frozen=True)
class Call:
    """A call that was slow or failed."""

    who: str
    kind: str
    name: str
    start_ns: int
    end_ns: int
    text: str

    def ms(self) -> float:
        return (self.end_ns - self.start_ns) / 1e6


@dataclass
class Life:
    """One process of an actor, from its start to its end."""

    name: str
    number: int
    acks: list[Ack] = field(default_factory=list)
    # By topic and sequence.
    tries: dict[tuple[str, str], Try] = field(default_factory=dict)
    # Records that its compactions removed, by topic.
    removed: list[tuple[str, int]] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    has_started: bool = False
    has_ended: bool = False
    was_killed: bool = False
    exit_code: int | None = None
    stderr: str = ""

    def __str__(self) -> str:
        return f"{self.name}/{self.number}"


def read_life(path: Path) -> Life:
    name, _, number = path.name.partition(".")
    life = Life(name, int(number))
    # Since the log was last opened, by topic: acknowledged, and not known to be out.
    waiting: dict[str, list[tuple[str, ...]]] = defaultdict(list)

    def settle(topic: str, is_out: bool) -> None:
        for where, partition, offset, count, durability, sequence in waiting.pop(topic, []):
            tag = f"{life.name}/{life.number}/{sequence}"
            numbers = int(partition), int(offset), int(count)
            life.acks.append(Ack(tag, where, *numbers, durability, is_out))

    for line in path.read_text().splitlines():
        kind, *words = line.split()
        if kind == "ack":
            waiting[words[0]].append(tuple(words))
        elif kind == "try":
            topic, partition, sequence, start, keys = words
            begun = Try(int(partition), int(start), tuple(keys.split(",")))
            life.tries[topic, sequence] = begun
        elif kind == "compacted":
            life.removed.append((words[0], int(words[1])))
        elif kind == "flushed":
            settle(words[0], True)
        elif kind in ("closed", "closed-badly"):
            for topic in list(waiting):
                settle(topic, kind == "closed")
        elif kind in ("slow", "busy", "error"):
            call, start, end, *text = words
            life.calls.append(Call(str(life), kind, call, int(start), int(end), " ".join(text)))
        elif kind == "fault":
            life.faults.append(" ".join(words))
        elif kind == "start":
            life.has_started = True
        elif kind == "end":
            life.has_ended = True
    for topic in list(waiting):
        settle(topic, False)
    return life


@dataclass
class Partition:
    """A partition as it is in the end: tags by offset, and keys, as a Try has them."""

    topic: str
    number: int
    earliest: int
    following: int
    tags: dict[int, str] = field(default_factory=dict)
    keys: dict[int, str] = field(default_factory=dict)
    # Segments that are sealed end here.
    sealed: int = 0

    @property
    def is_compacted(self) -> bool:
        return self.topic.startswith(COMPACTED)

    def __str__(self) -> str:
        return f"{self.topic}[{self.number}]"


def tag_of(record: edgelog.Record) -> str:
    # A tombstone has no value, so a header has its tag.
    value = record.value if record.value is not None else dict(record.headers).get("tag", b"")
    return value.split(b" ")[0].decode()


def key_of(record: edgelog.Record) -> str:
    return ("!" if record.value is None else "") + (record.key or b"").decode()


def read_partitions(log: edgelog.Log) -> dict[tuple[str, int], Partition]:
    found = {}
    for name in log.topics():
        if name.startswith(DEAD):
            continue
        topic = log.topic(name, create=False)
        for number in range(topic.options.partitions):
            stats = topic.partition_stats(number)
            one = Partition(name, number, stats.earliest_offset, stats.next_offset)
            for record in topic.reader(partition=number):
                one.tags[record.offset] = tag_of(record)
                if one.is_compacted or name == ORDERS:
                    one.keys[record.offset] = key_of(record)
            if one.is_compacted:
                compaction = topic.compaction(number)
                one.sealed = compaction.end_offset
                compaction.abandon()
            found[name, number] = one
    return found


def read_times(path: Path) -> list[tuple[int, int]]:
    pairs = (line.split() for line in path.read_text().splitlines())
    return [(int(start), int(end)) for start, end in pairs]


class History:
    """All of it."""

    def __init__(self, directory: Path, lives: dict[str, Life]) -> None:
        self.lives = [self._life(path, lives) for path in sorted((directory / "journal").iterdir())]
        self.stops = read_times(directory / "stops")
        self.slow = read_times(directory / "slow")
        self.end_ns = int((directory / "end").read_text())
        drained = directory / "drain.0"
        program = Path(os.environ["EDGELOG_TORTURE_BUILT"]) / "drain"
        words = [directory / "log", drained, "drain", 0, 1]
        subprocess.run([program, *map(str, words)], check=True)
        self.drain = read_life(drained)
        start = time.monotonic()
        # Nothing is compacted while it is looked at.
        with edgelog.open(directory / "log", maintenance="manual") as log:
            self.opened_s = time.monotonic() - start
            self.damages = [str(one) for one in log.verify()]
            self.partitions = read_partitions(log)
            self.groups = read_groups(directory, log)
        self.orders, self.there = read_orders(directory)
        subprocess.run([sys.executable, HERE / "compact.py", directory], check=True)
        # The same once more, compacted as far as it goes.
        with edgelog.open(directory / "log", maintenance="manual") as log:
            self.damages += [f"compacted: {one}" for one in log.verify()]
            self.compacted = read_partitions(log)
        self.leftovers = sorted(str(one) for one in (directory / "log").rglob("*.tmp"))

    @staticmethod
    def _life(path: Path, known: dict[str, Life]) -> Life:
        life = read_life(path)
        seen = known[path.name]
        life.was_killed, life.exit_code, life.stderr = seen.was_killed, seen.exit_code, seen.stderr
        return life

    def own_ms(self, call: Call) -> float:
        """How long a call took, without the time in which the machine itself was slow."""
        slow = [min(end, call.end_ns) - max(start, call.start_ns) for start, end in self.slow]
        return call.ms() - sum(ns for ns in slow if ns > 0) / 1e6

    def stood_still_ns(self, start_ns: int, end_ns: int) -> int:
        """For how long somebody was stopped, or the machine slow, at most."""
        times = [*self.stops, *self.slow]
        found = [min(end, end_ns) - max(start, start_ns) for start, end in times]
        return sum(ns for ns in found if ns > 0)

    def was_stopped(self, start_ns: int, end_ns: int) -> bool:
        """Whether a process stood still in between, because the driver stopped it."""
        return any(start < end_ns and end > start_ns for start, end in self.stops)
