"""What was acknowledged is there, once, where it was told, in order, and whole."""

from __future__ import annotations

from collections.abc import Iterator

from history import COMPACTED, Ack, History, Life, Partition

# Topics that are deleted meanwhile begin anew; what is acknowledged in them may go.
SHORT = "short-"


def check(history: History) -> Iterator[str]:
    yield from offsets_have_no_holes(history)
    yield from acknowledged_is_where_it_was_told(history)
    yield from everything_is_there_once(history)
    yield from each_process_is_in_order(history)
    yield from batches_are_whole(history)


def offsets_have_no_holes(history: History) -> Iterator[str]:
    for one in history.partitions.values():
        if one.topic in ("main", "parts") and one.earliest != 0:
            yield f"{one} begins at {one.earliest}"
        if not one.is_compacted and list(one.tags) != list(range(one.earliest, one.following)):
            yield f"{one} has holes, from {one.earliest} to {one.following}: {len(one.tags)}"


def acknowledged_is_where_it_was_told(history: History) -> Iterator[str]:
    everywhere = {tag for one in history.partitions.values() for tag in one.tags.values()}
    for life in history.lives:
        for ack in life.acks:
            if ack.topic.startswith((SHORT, COMPACTED)):
                continue
            one = history.partitions.get((ack.topic, ack.partition))
            if one is None:
                yield f"{ack}: the topic is not there"
                continue
            yield from about(ack, life, one, everywhere)


def about(ack: Ack, life: Life, one: Partition, everywhere: set[str]) -> Iterator[str]:
    # What retention removed cannot be looked at.
    wanted = {
        ack.offset + i: tag for i, tag in enumerate(ack.tags()) if ack.offset + i >= one.earliest
    }
    found = {offset: one.tags.get(offset) for offset in wanted}
    if found == wanted:
        return
    may_be_lost = ack.durability == "buffered" and not ack.is_out and life.was_killed
    if not may_be_lost:
        yield f"{ack} of {life} is not there; at its place: {found}"
    elif any(tag in everywhere for tag in wanted.values()):
        yield f"{ack} of {life}, which was killed, is neither there nor gone"


def everything_is_there_once(history: History) -> Iterator[str]:
    seen: dict[str, str] = {}
    for one in history.partitions.values():
        for offset, tag in one.tags.items():
            place = f"{one} {offset}"
            if tag in seen:
                yield f"{tag} is at {seen[tag]} and at {place}"
            seen[tag] = place


def each_process_is_in_order(history: History) -> Iterator[str]:
    for one in history.partitions.values():
        last: dict[str, tuple[int, int]] = {}
        for offset, tag in one.tags.items():
            name, life, sequence, index, _ = tag.split("/")
            who, now = f"{name}/{life}", (int(sequence), int(index))
            if who in last and last[who] >= now:
                yield f"{one} {offset}: {tag} comes after {last[who]}"
            last[who] = now


def batches_are_whole(history: History) -> Iterator[str]:
    for one in history.partitions.values():
        offset = one.following if one.is_compacted else one.earliest
        while offset < one.following:
            tag = one.tags.get(offset, "")
            if tag.count("/") != 4:
                yield f"{one} {offset}: no tag: {tag!r}"
                return
            batch, index, count = tag.rsplit("/", 2)
            found = [one.tags.get(offset + i) for i in range(int(count))]
            wanted = [f"{batch}/{i}/{count}" for i in range(int(count))]
            if index != "0" or found != wanted:
                yield f"{one} {offset}: a batch that is not whole: {found}"
            offset += max(int(count) - int(index), 1)
