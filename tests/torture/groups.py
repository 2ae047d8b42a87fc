"""What became of the records of groups, as those who took them wrote it down, and as the groups
say in the end.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import edgelog

JOBS = "jobs"
# Of the workers, and retained.
RING = "ring"
# What is taken in order.
ORDERS = "orders"
# Topics that get what is given up.
DEAD = "dead-"

Place = tuple[int, int]


@dataclass(frozen=True)
class Kind:
    """A group, as the actors make it."""

    dead_letter: str | None
    ack_timeout_ms: int
    claim_idle_ms: int
    max_deliveries: int
    topic: str = JOBS
    # Of an ordered group.
    lease_ttl_ms: int = 0
    processing_timeout_ms: int = 0

    @property
    def is_ordered(self) -> bool:
        return self.topic == ORDERS

    @property
    def is_whole(self) -> bool:
        """Nothing of the topic is removed."""
        return self.topic != RING


# group.h has the same.
KINDS = {
    "strict": Kind("dead-strict", 700, 400, 4),
    "loose": Kind(None, 1500, 600, 0),
    "once": Kind(None, 1000, 500, 0),
    "lossy": Kind(None, 1200, 500, 0, RING),
    "patient": Kind(None, 700, 0, 0, ORDERS, 600, 1000),
    "final": Kind("dead-final", 500, 0, 3, ORDERS, 800, 1200),
}
# The longest a refused record waits: the delays of the actors, and the group's own.
REFUSED_MS = 400


@dataclass(frozen=True)
class Took:
    """A record that a call delivered. How: new, due, claim; uncounted, own: that does not count."""

    who: str
    how: str
    start_ns: int
    end_ns: int
    deliveries: int
    tag: str

    @property
    def counts(self) -> bool:
        return self.how not in ("uncounted", "own")


@dataclass(frozen=True)
class Settled:
    """What: ack, nack, unnack, extend. Of a call that did not return, or failed, nobody knows the
    outcome: "?"; else d, a, u, n, f: done, already, unknown, not the owner, fenced.
    """

    who: str
    what: str
    start_ns: int
    end_ns: float
    outcome: str


@dataclass(frozen=True)
class UpTo:
    """All that a consumer had of a partition, acknowledged in one call; or nobody knows."""

    who: str
    place: Place
    start_ns: int
    end_ns: float
    count: int | None


@dataclass
class Record:
    took: list[Took] = field(default_factory=list)
    settled: list[Settled] = field(default_factory=list)


@dataclass(frozen=True)
class Copy:
    """A dead letter."""

    origin: str
    place: Place
    group: str
    deliveries: int
    reason: str
    tag: str


@dataclass(frozen=True)
class Stats:
    """What a group says of itself."""

    lag: int
    pending: int
    delivered: int
    redelivered: int
    acknowledged: int
    expired: int
    given_up: int
    skipped: int
    bytes: int


@dataclass
class Group:
    name: str
    records: dict[Place, Record] = field(default_factory=lambda: defaultdict(Record))
    up_to: list[UpTo] = field(default_factory=list)
    # By consumer: when it began to leave.
    leaves: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    copies: dict[Place, list[Copy]] = field(default_factory=lambda: defaultdict(list))
    # What those who took were told to be gone: expired, skipped.
    lost: list[tuple[int, int]] = field(default_factory=list)
    stats: Stats | None = None
    left: list[Place] = field(default_factory=list)
    # A check looked at it, or at these, and nothing is wrong; but not where something is planted.
    is_sound: bool = False
    is_planted: bool = False
    seen: dict[Place, Record] = field(default_factory=dict)

    @property
    def kind(self) -> Kind:
        return KINDS[self.name]


def consumer_of(who: str) -> str:
    """The consumer's name, of a life's."""
    return who.partition("/")[0]


def place_of(word: str) -> Place:
    partition, offset = word.split(":")
    return int(partition), int(offset)


# Calls that settle records, and leave.
SETTLES = ("ack", "nack", "unnack", "extend", "upto", "leave")


def life_of(path: Path, mark: str) -> str:
    """The life of a consumer, of which a process may have several, each with a mark."""
    name, _, number = path.name.partition(".")
    return f"{name}{mark}/{number}"


def read_journal(path: Path, groups: dict[str, Group]) -> None:
    # The calls that are under way: by mark, what, since when, and of which places.
    begun: dict[str, tuple[Group, str, int, list[Place]]] = {}

    def put(mark: str, end_ns: float, answer: str | None) -> None:
        if mark not in begun:
            return
        group, what, start_ns, places = begun.pop(mark)
        who = life_of(path, mark)
        if what == "leave":
            return
        if what == "upto":
            count = None if answer is None else 0 if answer == "f" else int(answer)
            group.up_to.append(UpTo(who, places[0], start_ns, end_ns, count))
            return
        for place, outcome in zip(places, answer or "?" * len(places), strict=True):
            settled = Settled(who, what, start_ns, end_ns, outcome)
            group.records[place].settled.append(settled)

    for line in path.read_text().splitlines():
        kind, *words = line.split()
        name, plus, mark = words[0].partition("+") if words else ("", "", "")
        mark = plus + mark
        if kind == "took":
            how, start, end, *items = words[1:]
            for item in items:
                partition, offset, deliveries, tag = item.split(":")
                who = life_of(path, mark)
                took = Took(who, how, int(start), int(end), int(deliveries), tag)
                groups[name].records[int(partition), int(offset)].took.append(took)
        elif kind.startswith("try-") and kind[4:] in SETTLES:
            put(mark, float("inf"), None)
            places = [place_of(word) for word in words[2:]]
            begun[mark] = groups[name], kind[4:], int(words[1]), places
            if kind == "try-leave":
                groups[name].leaves[consumer_of(life_of(path, mark))].append(int(words[1]))
        elif kind.startswith("did-"):
            put(mark, int(words[2]), words[3])
        elif kind == "lost":
            groups[name].lost.append((int(words[1]), int(words[2])))
        elif kind == "stats":
            groups[name].stats = Stats(*map(int, words[1:]))
        elif kind == "left":
            groups[name].left.append(place_of(words[1]))
    for mark in list(begun):
        put(mark, float("inf"), None)


def read_copies(log: edgelog.Log) -> Iterator[Copy]:
    for name in log.topics():
        if not name.startswith(DEAD):
            continue
        for record in log.topic(name, create=False).reader():
            headers = {str(name): value.decode() for name, value in record.headers}
            yield Copy(
                headers["edgelog.topic"],
                (int(headers["edgelog.partition"]), int(headers["edgelog.offset"])),
                headers["edgelog.group"],
                int(headers["edgelog.deliveries"]),
                headers["edgelog.reason"],
                (record.value or b"").split(b" ")[0].decode(),
            )


def read_groups(directory: Path, log: edgelog.Log) -> dict[str, Group]:
    groups = {name: Group(name) for name in KINDS}
    for path in sorted((directory / "journal").iterdir()):
        read_journal(path, groups)
    read_journal(directory / "drain.0", groups)
    for copy in read_copies(log):
        if copy.group in groups:
            groups[copy.group].copies[copy.place].append(copy)
    for group in groups.values():
        for record in group.records.values():
            record.took.sort(key=lambda took: took.start_ns)
            record.settled.sort(key=lambda settled: settled.start_ns)
    return groups
