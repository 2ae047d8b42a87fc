"""Compaction removed what it may, and nothing else; and in the end all of it."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass

from history import Ack, History, Partition, Try
from selfcheck import other

RULES, AGED, OWN = "compact-rules", "compact-aged", "compact-own"
FOR_NS = 2_000_000_000
TOMBSTONE_NS = 500_000_000
# A run that acknowledged more records than that must have removed some.
MANY = 5000


def last_of(topic: str, key: str) -> int | None:
    """How many of a key stay."""
    if topic == AGED:
        return 1
    kind = key.lstrip("!").split("/")[0]
    return {(RULES, "last"): 3, (RULES, "mine"): 2, (OWN, "two"): 2}.get((topic, kind))


@dataclass(frozen=True)
class Told:
    """A record of which its process was told that it is there."""

    ack: Ack
    begun: Try
    offset: int
    tag: str
    key: str


class Journals:
    """All that was appended to one partition, as far as the journals know."""

    def __init__(self, history: History, one: Partition) -> None:
        self.told: list[Told] = []
        self.keys: dict[str, str] = {}
        self.lost: set[str] = set()
        # By key: where tombstones are; nobody knows where those are that were not acknowledged.
        self.tombstones: dict[str, list[float]] = defaultdict(list)
        for life in history.lives:
            acks = {ack.tag: ack for ack in life.acks if ack.topic == one.topic}
            for (topic, sequence), begun in life.tries.items():
                if (topic, begun.partition) != (one.topic, one.number):
                    continue
                batch, count = f"{life}/{sequence}", len(begun.keys)
                ack = acks.get(batch)
                for i, key in enumerate(begun.keys):
                    tag = f"{batch}/{i}/{count}"
                    self.keys[tag] = key
                    if ack:
                        self.told.append(Told(ack, begun, ack.offset + i, tag, key))
                    if key.startswith("!"):
                        self.tombstones[key[1:]].append(ack.offset + i if ack else float("inf"))
                if ack and ack.durability == "buffered" and not ack.is_out and life.was_killed:
                    self.lost.update(ack.tags())


def check(history: History) -> Iterator[str]:
    for where, one in history.partitions.items():
        if not one.is_compacted:
            continue
        journals = Journals(history, one)
        for state, what in ((one, ""), (history.compacted[where], "compacted: ")):
            for text in nothing_else_is_there(state, journals):
                yield f"{what}{text}"
            for text in what_must_stay_is_there(history, state, journals):
                yield f"{what}{text}"
        yield from what_may_go_went(one, history.compacted[where])
    for name in history.leftovers:
        yield f"{name} is left of a compaction"
    yield from something_went(history)


def nothing_else_is_there(one: Partition, journals: Journals) -> Iterator[str]:
    told = {
        record.tag: record.offset for record in journals.told if record.tag not in journals.lost
    }
    last = -1
    for offset, tag in one.tags.items():
        if not last < offset < one.following:
            yield f"{one}: {offset} comes behind {last}, and {one.following} is the next"
        last = offset
        if journals.keys.get(tag) != one.keys[offset]:
            yield f"{one} {offset}: nobody wrote {tag} with the key {one.keys[offset]}"
        if told.get(tag, offset) != offset:
            yield f"{one} {offset}: {tag} was told to be at {told[tag]}"


def what_must_stay_is_there(history: History, one: Partition, journals: Journals) -> Iterator[str]:
    offsets: dict[str, list[int]] = defaultdict(list)
    for offset, key in one.keys.items():
        offsets[key.lstrip("!")].append(offset)
    everywhere = set(one.tags.values())
    for record in journals.told:
        if one.tags.get(record.offset) == record.tag:
            continue
        if record.tag in journals.lost:
            if record.tag in everywhere:
                yield f"{one}: {record} is neither there nor gone"
        elif not may_be_gone(history, one, record, offsets[record.key.lstrip("!")], journals):
            yield f"{one}: {record} is gone"


def may_be_gone(
    history: History, one: Partition, record: Told, same_key: list[int], journals: Journals
) -> bool:
    behind = same_key[bisect_right(same_key, record.offset) :]
    most = last_of(one.topic, record.key)
    # The last compaction comes when everything is old.
    is_last = one is not history.partitions[one.topic, one.number]
    age_ns = float("inf") if is_last else history.end_ns - record.begun.start_ns
    if most is None:
        kind = record.key.split("/")[0]
        gone = {"none": True, "for": age_ns > FOR_NS, "odd": record.offset % 2 == 1}
        return gone.get(kind, False)
    if len(behind) >= most or any(one.keys[offset].startswith("!") for offset in behind):
        return True
    if one.topic != AGED:
        return False
    # Old tombstones go, too.
    if record.key.startswith("!"):
        return age_ns > TOMBSTONE_NS
    return any(offset > record.offset for offset in journals.tombstones[record.key])


def what_may_go_went(before: Partition, after: Partition) -> Iterator[str]:
    wanted = {offset: before.tags[offset] for offset in staying(before)}
    for offset in sorted(wanted.keys() | after.tags.keys()):
        found = after.tags.get(offset)
        if found != wanted.get(offset):
            yield f"{before} {offset}: compacted: {found}, not {wanted.get(offset)}"
    if before.following != after.following:
        yield f"{before}: the next offset was {before.following} and is {after.following}"


def staying(one: Partition) -> Iterator[int]:
    """What a compaction leaves when everything is old, from the newest to the oldest."""
    kept: Counter[str] = Counter()
    deleted = set()
    for offset, key in reversed(one.keys.items()):
        name = key.lstrip("!")
        kind, most = name.split("/")[0], last_of(one.topic, name)
        if offset >= one.sealed:
            yield offset
        elif most is None:
            if kind == "all" or (kind == "odd" and offset % 2 == 0):
                yield offset
        else:
            is_tombstone = key.startswith("!")
            is_old = is_tombstone and one.topic == AGED
            if kept[name] < most and name not in deleted and not is_old:
                yield offset
            kept[name] += 1
            if is_tombstone:
                deleted.add(name)


def something_went(history: History) -> Iterator[str]:
    told = sum(
        a.count for life in history.lives for a in life.acks if a.topic in (RULES, AGED, OWN)
    )
    removed = Counter(topic for life in history.lives for topic, count in life.removed if count)
    for topic in (RULES, AGED, OWN):
        if told > MANY and not removed[topic]:
            yield f"nothing was removed of {topic}"


# What would be wrong, for selfcheck.py.


@contextmanager
def lost(*states: Partition, offset: int) -> Iterator[None]:
    def lose(one: Partition) -> None:
        del one.tags[offset], one.keys[offset]

    with ExitStack() as stack:
        for one in states:
            stack.enter_context(other(one, lose))
        yield


@contextmanager
def leftover(history: History) -> Iterator[None]:
    history.leftovers.append("a.tmp")
    yield
    history.leftovers.pop()


def plants(history: History) -> Iterator[tuple[str, AbstractContextManager[None]]]:
    yield "a file that is left of a compaction", leftover(history)
    for where, one in history.partitions.items():
        if one.is_compacted and len(one.tags) > 1 and one.sealed:
            yield from plants_in(history, one, history.compacted[where])


def plants_in(
    history: History, one: Partition, after: Partition
) -> Iterator[tuple[str, AbstractContextManager[None]]]:
    journals = Journals(history, one)
    told = {record.tag for record in journals.told} - journals.lost
    # Of keys that nobody deletes; where nobody was told of the last one, it may replace the others.
    newest = {
        key: offset
        for key, offset in {key: offset for offset, key in one.keys.items()}.items()
        if one.tags[offset] in told and max(journals.tombstones[key], default=-1) < offset
    }
    for kind in ("all", "mine", "two", "k"):
        found = [offset for key, offset in newest.items() if key.startswith(kind)]
        for offset in found[:1]:
            yield f"a lost record of {one}, {kind}", lost(one, after, offset=offset)
    some = next(iter(one.tags))
    free = next((o for o in range(some, one.following) if o not in one.tags), None)
    tag, key = one.tags[some], one.keys[some]

    def strange(changed: Partition) -> None:
        changed.tags[some] = "nobody/0/1/0/1"

    def renamed(changed: Partition) -> None:
        changed.keys[some] = "other"

    def moved(changed: Partition) -> None:
        assert free is not None
        del changed.tags[some], changed.keys[some]
        changed.tags.update({free: tag})
        changed.keys.update({free: key})

    yield f"what nobody wrote in {one}", other(one, strange)
    yield f"another key in {one}", other(one, renamed)
    if free is not None and tag in told:
        yield f"another offset in {one}", other(one, moved)
    yield f"what the last compaction lost of {one}", lost(after, offset=next(iter(after.tags)))
    gone = next((offset for offset in one.tags if offset not in after.tags), None)

    def left(changed: Partition) -> None:
        assert gone is not None
        changed.tags = {gone: one.tags[gone], **changed.tags}
        changed.keys = {gone: one.keys[gone], **changed.keys}

    if gone is not None:
        yield f"what the last compaction left of {one}", other(after, left)
