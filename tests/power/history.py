"""What one flash went through: what was tried, acknowledged and promised, and what was found after
each cut. Lines of the programs on the board go in, in their order; faults come out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

Place = tuple[int, int]  # partition, offset

# How much later than sync_interval_ms a record may get onto the medium: the board is slow, and this
# machine has other things to do.
LATE_MS = 2000
# edgelog_damage.kind
TORN_TAIL, FRAME, FOOTER, HEADER, SEGMENT, MISSING, META, TOPIC = range(1, 9)
# What no cut may do to a log: these are written once, and replaced as a whole.
NEVER = {HEADER: "a header", SEGMENT: "a segment", META: "a description", TOPIC: "a topic"}


@dataclass
class Ack:
    """A record that was acknowledged."""

    place: Place
    tag: str
    at_ms: int
    is_written: bool


@dataclass
class Topic:
    name: str
    # Of every record that was ever to be appended: its key.
    tried: dict[str, str] = field(default_factory=dict)
    # Where it is, as far as is known; and those of this life that may still be lost.
    acked: dict[str, Place] = field(default_factory=dict)
    loose: list[Ack] = field(default_factory=list)
    # What has to be there.
    promised: dict[Place, str] = field(default_factory=dict)
    # What was not there after a cut, or was deleted, and may not come back.
    gone: set[str] = field(default_factory=set)
    # Offsets of which a report said that they are lost: partition, from, to.
    lost: list[tuple[int, int, int]] = field(default_factory=list)
    sync_interval_ms: int = 0
    max_bytes: int = 0

    @property
    def is_compacted(self) -> bool:
        return self.name.startswith("compact")

    def promise(self, ack: Ack) -> None:
        self.promised[ack.place] = ack.tag

    def promise_all(self, *, partition: int | None = None, below: int | None = None) -> None:
        """What was acknowledged is on the medium: all, of a partition, or below an offset of it."""
        left = []
        for ack in self.loose:
            is_meant = partition in (None, ack.place[0]) and (below is None or ack.place[1] < below)
            if is_meant:
                self.promise(ack)
            else:
                left.append(ack)
        self.loose = left

    def delete(self) -> None:
        self.gone.update(self.tried)
        self.tried.clear()
        self.acked.clear()
        self.lost.clear()


@dataclass
class Group:
    name: str
    topic: str
    is_synced: bool
    is_ordered: bool = False
    # Of a record of which somebody was told: its place and tag.
    took: dict[tuple[Place, str], int] = field(default_factory=dict)
    tried: set[tuple[Place, str]] = field(default_factory=set)
    settled: set[tuple[Place, str]] = field(default_factory=set)
    # The highest epoch that anybody was told, in all lives and in those before.
    epoch: int = 0
    epoch_before: int = 0
    # What an ordered group is to begin with in a partition.
    first: dict[int, int] = field(default_factory=dict)
    has_begun: set[int] = field(default_factory=set)


@dataclass
class Look:
    """What was found after a cut."""

    earliest: dict[tuple[str, int], int] = field(default_factory=dict)
    next: dict[tuple[str, int], int] = field(default_factory=dict)
    durable: dict[tuple[str, int], int] = field(default_factory=dict)
    bytes: dict[tuple[str, int], int] = field(default_factory=dict)
    records: dict[str, dict[Place, tuple[str, str]]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    cursors: dict[tuple[str, str, int], int] = field(default_factory=dict)
    pending: dict[tuple[str, str], dict[Place, int]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    leases: list[tuple[str, str, int, int, str]] = field(default_factory=list)
    sums: dict[str, str] = field(default_factory=dict)


class History:
    """One flash, from new on."""

    def __init__(self, check: Callable[[History], Iterator[str]]) -> None:
        self.check = check
        self.topics: dict[str, Topic] = {}
        self.groups: dict[tuple[str, str], Group] = {}
        self.look = Look()
        # Segments of which a first open said something.
        self.explained: set[tuple[str, int, int]] = set()
        self.life = 0
        self.now_ms = 0
        # A look that was cut may have repaired something and told nobody.
        self.has_untold = False
        self.is_looking = False
        self.looks = 0
        self.records_checked = 0

    def topic(self, name: str) -> Topic:
        return self.topics.setdefault(name, Topic(name))

    def take(self, lines: list[str]) -> Iterator[str]:
        """The lines of one start of the board."""
        self.life += 1
        for line in lines:
            text, _, at = line.rpartition(" @")
            if not text:
                # Of init, or the half of a line.
                if line.startswith("INIT"):
                    yield line
                elif line.startswith("RAN") and line.split()[2:] != ["0", "0"]:
                    yield f"a program failed: {line}"
                elif line.startswith("FLASH") and line.split()[-1] != "0":
                    yield f"the file system misused the flash: {line}"
                continue
            self.now_ms = int(at)
            words = text.split(" ")
            if words[0] == "FAULT":
                yield text
                continue
            method = getattr(self, "on_" + words[0].lower().replace("-", "_"), None)
            if method is not None:
                yield from method(*words[1:]) or ()
        yield from self.power_off()

    def power_off(self) -> Iterator[str]:
        """What is certain of a life when it is over."""
        if self.is_looking:
            self.has_untold = True
            self.is_looking = False
        for topic in self.topics.values():
            if topic.sync_interval_ms:
                until = self.now_ms - topic.sync_interval_ms - LATE_MS
                for ack in topic.loose:
                    if ack.is_written and ack.at_ms <= until:
                        topic.promise(ack)
            topic.loose.clear()
        for group in self.groups.values():
            group.epoch_before = group.epoch
            group.first.clear()
            group.has_begun.clear()
        yield from ()

    # ---- Lines of victims.

    def on_try(self, name: str, sequence: str, count: str, key: str) -> None:
        for i in range(int(count)):
            self.topic(name).tried[f"{self.life}/{int(sequence) + i}"] = key

    def on_ack(
        self, name: str, partition: str, offset: str, sequence: str, count: str, level: str
    ) -> Iterator[str]:
        topic, place = self.topic(name), (int(partition), int(offset))
        following = self.look.next.get((name, place[0]), 0)
        for i in range(int(count)):
            one = (place[0], place[1] + i)
            tag = f"{self.life}/{int(sequence) + i}"
            there = topic.promised.get(one)
            if there is not None:
                yield f"{name} {one}: given to {tag}, and {there} is there"
            topic.acked[tag] = one
            topic.loose.append(Ack(one, tag, self.now_ms, level != "buffered"))
        if self.is_looking and place[1] < following:
            yield f"{name} {place}: the next offset was to be {following}"
        if level == "synced":
            topic.promise_all(partition=place[0], below=place[1] + int(count))

    def on_safe(self, name: str) -> None:
        for topic in self.topics.values() if name == "*" else [self.topic(name)]:
            topic.promise_all()

    def on_durable(self, name: str, partition: str, offset: str) -> None:
        self.topic(name).promise_all(partition=int(partition), below=int(offset))

    def on_interval(self, name: str, ms: str) -> None:
        self.topic(name).sync_interval_ms = int(ms)

    def on_limit(self, name: str, max_bytes: str) -> None:
        self.topic(name).max_bytes = int(max_bytes)

    def on_try_delete(self, name: str) -> None:
        topic = self.topic(name)
        topic.promised.clear()
        topic.loose.clear()

    def on_deleted(self, name: str) -> None:
        self.topic(name).delete()

    # ---- Lines of groups. A place is PARTITION:OFFSET.

    def on_group(self, topic: str, name: str, level: str, kind: str) -> None:
        group = Group(name, topic, level == "synced", kind == "ordered")
        self.groups.setdefault((topic, name), group)

    def on_took(self, topic: str, name: str, *places: str) -> Iterator[str]:
        group = self.groups[topic, name]
        for text in places:
            partition, offset, deliveries, tag = text.split(":")
            place = (int(partition), int(offset))
            one = (place, tag)
            if tag not in self.topic(topic).tried:
                yield f"{topic} {name} {place}: {tag} was delivered, and nobody appended it"
            if one in group.settled:
                yield f"{topic} {name} {place}: {tag} came again, and was acknowledged"
            had = group.took.get(one, 0)
            if group.is_synced and int(deliveries) <= had:
                yield f"{topic} {name} {place}: delivery {deliveries} after {had}"
            group.took[one] = max(had, int(deliveries))
            if group.is_ordered and place[0] not in group.has_begun:
                group.has_begun.add(place[0])
                first = group.first.get(place[0], place[1])
                if place[1] != first:
                    yield f"{topic} {name} {place}: begins here, and {first} is not settled"

    def tag_at(self, topic: str, group: Group, place: Place) -> tuple[Place, str]:
        """What was delivered last of a place."""
        tags = [tag for one, tag in group.took if one == place]
        return (place, tags[-1] if tags else "")

    def on_try_ack(self, topic: str, name: str, *places: str) -> None:
        group = self.groups[topic, name]
        for text in places:
            partition, offset = text.split(":")
            group.tried.add(self.tag_at(topic, group, (int(partition), int(offset))))

    def on_did_ack(self, topic: str, name: str, *places: str) -> None:
        group = self.groups[topic, name]
        for text in places if group.is_synced else ():
            partition, offset = text.split(":")
            group.settled.add(self.tag_at(topic, group, (int(partition), int(offset))))

    def on_epoch(self, topic: str, name: str, partition: str, epoch: str) -> Iterator[str]:
        group = self.groups[topic, name]
        if int(epoch) <= group.epoch_before:
            before = group.epoch_before
            yield f"{topic} {name} {partition}: epoch {epoch}, and {before} was before the cut"
        group.epoch = max(group.epoch, int(epoch))

    # ---- Lines of the look.

    def on_look(self) -> None:
        self.look = Look()
        self.is_looking = True

    def on_damage(
        self,
        when: str,
        kind: str,
        topic: str,
        partition: str,
        segment: str,
        position: str,
        size: str,
        offset: str,
        end: str,
    ) -> Iterator[str]:
        where, lost = (topic, int(partition), int(segment)), self.topic(topic).lost
        text = f"kind {kind} in {topic} {partition} {segment} at {position}, {size} bytes"
        text += f", offsets {offset} to {end}"
        if when == "first":
            self.explained.add(where)
            lost.append((int(partition), int(offset), int(end)))
            if int(kind) in NEVER:
                yield f"a cut damaged {NEVER[int(kind)]}: {text}"
        # A loss is told again, of the segment that follows, when there is one.
        elif where not in self.explained and not (
            int(kind) == MISSING and (int(partition), int(offset), int(end)) in lost
        ):
            yield f"{when} found what the first open had not: {text}"

    def on_part(
        self, topic: str, partition: str, earliest: str, following: str, durable: str, size: str
    ) -> None:
        where = (topic, int(partition))
        self.look.earliest[where] = int(earliest)
        self.look.next[where] = int(following)
        self.look.durable[where] = int(durable)
        self.look.bytes[where] = int(size)

    def on_rec(self, name: str, partition: str, offset: str, tag: str, key: str) -> Iterator[str]:
        place, records = (int(partition), int(offset)), self.look.records[name]
        before = next(reversed(records)) if records else (-1, 0)
        if before[0] == place[0] and before[1] >= place[1]:
            yield f"{name} {place}: comes behind {before}"
        records[place] = (tag, key)

    def on_cursor(self, topic: str, group: str, partition: str, offset: str) -> None:
        self.look.cursors[topic, group, int(partition)] = int(offset)

    def on_pending(
        self, topic: str, group: str, partition: str, offset: str, deliveries: str
    ) -> None:
        self.look.pending[topic, group][int(partition), int(offset)] = int(deliveries)

    def on_lease(self, topic: str, group: str, partition: str, epoch: str, holder: str) -> None:
        self.look.leases.append((topic, group, int(partition), int(epoch), holder))

    def on_no_log(self) -> Iterator[str]:
        yield from self.on_probes()

    def on_probes(self) -> Iterator[str]:
        """All was told that a cut left; what follows is new."""
        self.looks += 1
        yield from self.check(self)
        for topic in self.topics.values():
            records = self.look.records[topic.name]
            found = {tag: place for place, (tag, _) in records.items()}
            topic.gone.update(tag for tag in topic.tried if tag not in found)
            topic.tried = {tag: key for tag, key in topic.tried.items() if tag in found}
            topic.acked = found
            # What survived one cut survives the next.
            topic.promised = {place: tag for place, (tag, _) in records.items()}
        for (name, _), group in self.groups.items():
            group.first = self.first_of(name, group)

    def first_of(self, topic: str, group: Group) -> dict[int, int]:
        """In each partition the oldest record that the group has not settled."""
        first = {}
        for name, partition in self.look.next:
            if name != topic:
                continue
            cursor = self.look.cursors.get((topic, group.name, partition), 0)
            # What is pending and lost is passed over.
            pending = self.look.pending[topic, group.name]
            there = [place for place in self.look.records[topic] if place[0] == partition]
            left = [place[1] for place in there if place in pending or place[1] >= cursor]
            if left:
                first[partition] = min(left)
        return first

    def on_sum(self, when: str, value: str) -> None:
        self.look.sums[when] = value

    def on_looked(self) -> Iterator[str]:
        self.is_looking = False
        if self.look.sums.get("first") != self.look.sums.get("second"):
            yield f"a second open found something else: {self.look.sums}"
