"""What has to be true of a log after a cut, whatever was under way: a line for each thing that is
not."""

from __future__ import annotations

from collections.abc import Iterator

from history import Group, History, Place, Topic


def check(history: History) -> Iterator[str]:
    for topic in history.topics.values():
        yield from promised(history, topic)
        yield from known(history, topic)
        if not topic.is_compacted:
            yield from gaps(history, topic)
    for group in history.groups.values():
        yield from groups(history, group)
    yield from leases(history)


def promised(history: History, topic: Topic) -> Iterator[str]:
    """What was promised is there, at its offset; or, after compaction, something newer of its key;
    or it was among the oldest of a topic that drops these, and has not dropped more than half of
    what it may have."""
    look = history.look
    records = look.records[topic.name]
    kept = sum(size for (name, _), size in look.bytes.items() if name == topic.name)
    may_drop = 0 < topic.max_bytes <= 2 * kept
    newest: dict[str, int] = {}
    for (_, offset), (_, key) in records.items():
        newest[key] = max(newest.get(key, -1), offset)
    for place, tag in topic.promised.items():
        history.records_checked += 1
        found = records.get(place, ("nothing", ""))[0]
        key = topic.tried.get(tag, "-")
        following = look.next.get((topic.name, place[0]), 0)
        if following <= place[1]:
            yield f"{topic.name} {place}: was given out, and {following} is next"
        if found == tag:
            continue
        is_old = may_drop and place[1] < look.earliest.get((topic.name, place[0]), 0)
        is_replaced = topic.is_compacted and key != "-" and newest.get(key, -1) > place[1]
        if not is_old and not (is_replaced and found == "nothing"):
            yield f"{topic.name} {place}: {tag} was promised, and {found} is there"


def known(history: History, topic: Topic) -> Iterator[str]:
    """All that is there was appended, once, under its key; what was acknowledged is where it was
    said to be; what was gone is gone."""
    seen: dict[str, Place] = {}
    for place, (tag, key) in history.look.records[topic.name].items():
        if tag in seen:
            yield f"{topic.name} {place}: {tag} is also at {seen[tag]}"
        seen[tag] = place
        earliest = history.look.earliest.get((topic.name, place[0]), 0)
        if place[1] < earliest:
            yield f"{topic.name} {place}: lies before the first offset, {earliest}"
        if tag in topic.gone:
            yield f"{topic.name} {place}: {tag} came back"
        elif tag not in topic.tried:
            yield f"{topic.name} {place}: nobody appended {tag}"
        elif topic.tried[tag] != key:
            yield f"{topic.name} {place}: {tag} has the key {key}, not {topic.tried[tag]}"
        elif topic.acked.get(tag, place) != place:
            yield f"{topic.name} {place}: {tag} was said to be at {topic.acked[tag]}"


def gaps(history: History, topic: Topic) -> Iterator[str]:
    """Offsets without a record were reported as lost."""
    records = history.look.records[topic.name]
    for (name, partition), following in history.look.next.items():
        if name != topic.name or history.has_untold:
            continue
        earliest = history.look.earliest[name, partition]
        ranges = [(begin, end) for where, begin, end in topic.lost if where == partition]
        for offset in range(earliest, following):
            is_lost = any(begin <= offset < end for begin, end in ranges)
            if (partition, offset) not in records and not is_lost:
                yield f"{name} {(partition, offset)}: is not there, and no report says so"


def groups(history: History, group: Group) -> Iterator[str]:
    """What was acknowledged for good does not come again; what was not, does, and is counted."""
    records = history.look.records[group.topic]
    pending = history.look.pending[group.topic, group.name]
    for place, (tag, _) in records.items():
        one = (place, tag)
        cursor = history.look.cursors.get((group.topic, group.name, place[0]), 0)
        is_ahead = place in pending or place[1] >= cursor
        where = f"{group.topic} {group.name} {place}"
        history.records_checked += 1
        if one in group.settled and is_ahead:
            yield f"{where}: {tag} was acknowledged, and comes again"
        if one not in group.tried and not is_ahead:
            yield f"{where}: {tag} was never acknowledged, and is lost"
        had = group.took.get(one, 0)
        if group.is_synced and place in pending and pending[place] < had:
            yield f"{where}: {tag} was delivered {had} times, not {pending[place]}"
        if group.is_synced and place not in pending and place[1] >= cursor and had:
            yield f"{where}: {tag} was delivered, and is new"


def leases(history: History) -> Iterator[str]:
    """No lease outlives a boot, and no epoch that was told is forgotten."""
    epochs: dict[tuple[str, str], int] = {}
    for topic, name, partition, epoch, holder in history.look.leases:
        epochs[topic, name] = max(epochs.get((topic, name), 0), epoch)
        if holder != "-":
            yield f"{topic} {name} {partition}: is still leased to {holder}"
    for (topic, name), group in history.groups.items():
        known = epochs.get((topic, name), 0)
        if group.is_ordered and known < group.epoch:
            yield f"{topic} {name}: epoch {group.epoch} was told, and {known} is known"
