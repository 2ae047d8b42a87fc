"""Every record of a group's topic was acknowledged, once, or given up and kept; nothing that was
settled came again, nothing came too early, or too late, or as another one.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace

from groups import (
    REFUSED_MS,
    Copy,
    Group,
    Place,
    Record,
    Settled,
    Stats,
    Took,
    UpTo,
    consumer_of,
)
from history import History

# How much later than it may a record comes again where nobody is stopped.
LATE_NS = 4_000_000_000 * float(os.environ.get("EDGELOG_TORTURE_PATIENCE", "1"))
# In a run with fewer records than that, one group or the other may not have come to it.
MANY = 8000
TAKEN_MAX = 64
# A group's time has whole milliseconds.
ROUNDED_NS = 2_000_000
# What a consumer may have at once, about.
UP_TO_MAX = 1000
GIVEN_UP = ("refused by ", "not acknowledged in time")


def check(history: History) -> Iterator[str]:
    for call in history.drain.calls:
        if call.kind == "error":
            yield f"the last drain: {call}"
    for group in history.groups.values():
        if group.is_sound and not group.is_planted:
            continue
        texts = list(look_at(history, group))
        yield from texts
        group.is_sound |= not texts and not group.is_planted


def look_at(history: History, group: Group) -> Iterator[str]:
    look, tags = Look(history, group), tags_of(history, group.kind.topic)
    for place, record in group.records.items():
        if group.seen.get(place) is record:
            continue
        texts = list(look.at(place, record, tags.get(place)))
        yield from (f"{group.name} {place}: {text}" for text in texts)
        if not texts:
            group.seen[place] = record
    for text in look.at_all(tags) if look.is_whole else look.at_all_that_was_kept(tags):
        yield f"{group.name}: {text}"


def tags_of(history: History, topic: str) -> dict[Place, str]:
    """What is where, or was there, as far as is known."""
    tags: dict[Place, str] = {}
    for life in history.lives:
        for ack in life.acks:
            may_be_lost = ack.durability == "buffered" and not ack.is_out and life.was_killed
            if ack.topic == topic and not may_be_lost:
                places = ((ack.partition, ack.offset + i) for i in range(ack.count))
                tags.update(zip(places, ack.tags(), strict=True))
    for (name, partition), one in history.partitions.items():
        if name == topic:
            tags.update(((partition, offset), tag) for offset, tag in one.tags.items())
    return tags


def had_it(record: Record, up_to: UpTo) -> bool:
    """Whether it was the last one of whom is known that he took it."""
    last = record.took[-1] if record.took else None
    return (
        last is not None
        and consumer_of(last.who) == consumer_of(up_to.who)
        and last.start_ns < up_to.start_ns
    )


class Look:
    """Looks at one group."""

    def __init__(self, history: History, group: Group) -> None:
        self.history = history
        self.group = group
        self.kind = group.kind
        self.is_whole = group.kind.is_whole
        # What nobody may have taken away from a consumer so soon.
        self.sure_ns = min(self.kind.ack_timeout_ms, self.kind.claim_idle_ms) * 1_000_000
        # By consumer: when it began to acknowledge up to an offset.
        self.ups: dict[str, list[int]] = defaultdict(list)
        for one in group.up_to:
            self.ups[consumer_of(one.who)].append(one.start_ns)
        self.killed = [life for life in history.lives if life.was_killed]

    def at(self, place: Place, record: Record, tag: str | None) -> Iterator[str]:
        for took in record.took:
            if took.tag != tag and (self.is_whole or tag):
                yield f"{took} is {tag}"
        yield from self.counts_rise(record)
        yield from self.what_is_settled_stays_so(place, record)
        # Of an ordered group leases say who has what, and when: order.py looks at them.
        if not self.kind.is_ordered:
            yield from self.nothing_comes_too_early(record)
            yield from self.nothing_comes_too_late(place, record)
            yield from self.who_has_it_settles_it(record)

    def counts_rise(self, record: Record) -> Iterator[str]:
        uncounted = [one.start_ns for one in record.settled if one.what == "unnack"]
        seen: list[Took] = []
        for took in record.took:
            back = sum(start_ns < took.end_ns for start_ns in uncounted)
            for before in seen:
                is_later = before.end_ns <= took.start_ns
                if is_later and took.deliveries + back < before.deliveries + took.counts:
                    yield f"{took} came after {before}"
                both = took.counts and before.counts and not uncounted
                if both and took.deliveries == before.deliveries:
                    yield f"{took} came as often as {before}"
                if is_later and took.how == "new":
                    yield f"{took} is not new after {before}"
            if took.deliveries < took.counts or (took.how == "new" and took.deliveries != 1):
                yield f"{took}: so often"
            seen.append(took)

    def touches(self, record: Record) -> Iterator[tuple[str, int, float]]:
        """When a consumer had it and its time began anew."""
        for took in record.took:
            if took.how != "own":
                yield took.who, took.start_ns, took.end_ns
        for one in record.settled:
            if one.what == "extend" and one.outcome == "d":
                yield one.who, one.start_ns, one.end_ns

    def was_let_go(self, record: Record, who: str, since_ns: int, until_ns: float) -> bool:
        """Whether a consumer may have let it go meanwhile."""
        name = consumer_of(who)
        settled = [
            one.start_ns for one in record.settled if one.what != "extend" and one.outcome in "d?"
        ]
        times = (*settled, *self.group.leaves.get(name, ()), *self.ups.get(name, ()))
        return any(since_ns <= start_ns < until_ns for start_ns in times)

    def nothing_comes_too_early(self, record: Record) -> Iterator[str]:
        seen = None
        for took in record.took:
            if took.how == "own":
                continue
            before, seen = seen, took
            # Somebody else may have had it, and let it go, and not told before he died.
            if not before or took.deliveries != before.deliveries + took.counts:
                continue
            is_claim = took.how in ("claim", "uncounted")
            ms = self.kind.claim_idle_ms if is_claim else self.kind.ack_timeout_ms
            touches = [one for one in self.touches(record) if one[1] < took.end_ns]
            touches.remove((took.who, took.start_ns, took.end_ns))
            who, start_ns, _ = max(touches, key=lambda touch: touch[1])
            is_early = took.end_ns - start_ns < ms * 1_000_000 - ROUNDED_NS
            if not is_early or any(end_ns > took.start_ns for _, _, end_ns in touches):
                continue
            if not self.was_let_go(record, who, start_ns, took.end_ns):
                yield f"{took} came too early: {who} had it from {start_ns}"

    def nothing_comes_too_late(self, place: Place, record: Record) -> Iterator[str]:
        came = [took for took in record.took if took.how != "own"]
        for before, took in zip(came, came[1:], strict=False):
            since_ns: float = before.end_ns
            for one in record.settled:
                if one.what != "ack" and one.start_ns < took.start_ns:
                    waits = one.what != "extend" and one.outcome == "d"
                    end_ns = one.start_ns if one.outcome == "?" else one.end_ns
                    since_ns = max(since_ns, end_ns + waits * REFUSED_MS * 1_000_000)
            # Somebody else may have had it and not told before he died.
            often = max(1, took.deliveries - before.deliveries)
            most_ns = often * (self.kind.ack_timeout_ms + REFUSED_MS) * 1_000_000 + LATE_NS
            late_ns = took.start_ns - since_ns
            if late_ns <= most_ns:
                continue
            late_ns -= self.history.stood_still_ns(int(since_ns), took.start_ns)
            if late_ns > most_ns:
                yield f"{took} came {late_ns / 1e6:.0f} ms after {before}"

    def what_is_settled_stays_so(self, place: Place, record: Record) -> Iterator[str]:
        done = [one for one in record.settled if one.what == "ack" and one.outcome == "d"]
        for one in done[1:]:
            yield f"acknowledged twice: {done[0]}, {one}"
        for one in self.given_up_for_sure(record):
            if place not in self.group.copies:
                yield f"no copy was kept after {one}"
            done.append(one)
        for end in done:
            for took in record.took:
                if took.start_ns >= end.end_ns:
                    yield f"{took} came after {end}"
            for one in record.settled:
                if one.outcome == "d" and one.start_ns >= end.end_ns:
                    yield f"{one} was done after {end}"

    def given_up_for_sure(self, record: Record) -> Iterator[Settled]:
        most = self.kind.max_deliveries
        for one in record.settled:
            if most and one.what == "nack" and one.outcome == "d":
                before = [took.deliveries for took in record.took if took.end_ns <= one.start_ns]
                if max(before, default=0) >= most:
                    yield one

    def who_has_it_settles_it(self, record: Record) -> Iterator[str]:
        for one in record.settled:
            if one.outcome == "u":
                yield f"{one}: unknown"
            # What was removed is not to be settled any more.
            if one.outcome not in ("na" if self.is_whole else "n"):
                continue
            for who, start_ns, end_ns in self.touches(record):
                is_own = consumer_of(who) == consumer_of(one.who) and end_ns <= one.start_ns
                is_sure = is_own and one.end_ns - start_ns < self.sure_ns - ROUNDED_NS
                if is_sure and not self.was_let_go(record, who, start_ns, one.end_ns):
                    yield f"{one}, and {who} has it from {start_ns}"

    def at_all(self, tags: dict[Place, str]) -> Iterator[str]:
        yield from self.copies_are_right(tags)
        yield from self.all_is_accounted_for(tags)
        yield from self.sums_are_right(len(tags))
        yield from self.all_was_tried(len(tags))

    def at_all_that_was_kept(self, tags: dict[Place, str]) -> Iterator[str]:
        stats = self.group.stats
        following = self.history.partitions[self.kind.topic, 0].following
        if stats is None or stats.lag or stats.pending or self.group.left:
            yield f"something is left: {stats}, {self.group.left[:3]}"
            return
        # The group is older than the first removal.
        if stats.delivered + stats.skipped != following:
            yield f"{following} records, and {stats}"
        if stats.delivered != stats.acknowledged + stats.expired or stats.given_up:
            yield f"it does not balance: {stats}"
        expired = sum(told for told, _ in self.group.lost)
        skipped = sum(told for _, told in self.group.lost)
        if expired > stats.expired or skipped > stats.skipped:
            yield f"{expired} records expired and {skipped} were skipped, and {stats}"
        yield from self.acknowledgements_are_right(stats)

    def copies_are_right(self, tags: dict[Place, str]) -> Iterator[str]:
        for place, copies in self.group.copies.items():
            for copy in copies:
                right = (
                    copy.origin == self.kind.topic
                    and copy.tag == tags.get(place)
                    and copy.deliveries >= self.kind.max_deliveries > 0
                    and copy.reason.startswith(GIVEN_UP)
                )
                if not right:
                    yield f"{copy} is a copy of {tags.get(place)}"
        # Who died, or stood still, may have done it and not said so.
        more = sum(len(copies) - 1 for copies in self.group.copies.values())
        accidents = len(self.killed) + len(self.history.stops)
        # It may be taken up by another then, who acknowledges it.
        both = sum(
            one.what == "ack" and one.outcome == "d"
            for place in self.group.copies
            for one in self.group.records.get(place, Record()).settled
        )
        if max(more, both) > accidents * TAKEN_MAX:
            yield (
                f"{more} copies too many, {both} of what is acknowledged, "
                f"and only {accidents} were killed or stopped"
            )

    def all_is_accounted_for(self, tags: dict[Place, str]) -> Iterator[str]:
        if self.group.name == "once":
            yield from self.all_came_once(tags)
            return
        told = 0
        for place in tags:
            record = self.group.records.get(place, Record())
            if place in self.group.copies or any(
                one.what == "ack" and one.outcome in "d?" for one in record.settled
            ):
                continue
            ups = [
                one
                for one in self.group.up_to
                if one.place[0] == place[0] and one.place[1] >= place[1]
            ]
            # Or somebody took it, died before he told, and came back.
            had = [one for one in ups if had_it(record, one)]
            if any(one.count for one in had):
                told += 1
            elif any(one.count is None for one in had):
                continue
            elif any(one.count for one in ups):
                told += 1
            else:
                yield f"{place}, {tags[place]}, is lost: {record}"
        known = sum(one.count or 0 for one in self.group.up_to)
        if told > known:
            yield f"{told} records are lost, and {known} were acknowledged up to an offset"

    def all_came_once(self, tags: dict[Place, str]) -> Iterator[str]:
        for place, record in self.group.records.items():
            if len(record.took) != 1:
                yield f"{place} came {len(record.took)} times"
        missing = len(tags) - len(self.group.records)
        if missing > len(self.killed) * TAKEN_MAX:
            yield f"{missing} records came to nobody, and only {len(self.killed)} were killed"

    def sums_are_right(self, count: int) -> Iterator[str]:
        stats = self.group.stats
        if stats is None:
            yield "no statistics"
            return
        if stats.lag or stats.pending or self.group.left:
            yield f"something is left: {stats}, {self.group.left[:3]}"
        if (stats.delivered, stats.expired, stats.skipped) != (count, 0, 0):
            yield f"{count} records, and {stats}"
        gone = stats.acknowledged + stats.expired + stats.given_up
        if stats.delivered != gone + stats.pending:
            yield f"it does not balance: {stats}"
        if stats.given_up > len(self.group.copies):
            yield f"{len(self.group.copies)} records were kept, and {stats}"
        if self.group.name == "once":
            return
        yield from self.acknowledgements_are_right(stats)
        again = sum(
            took.counts and took.deliveries > 1
            for record in self.group.records.values()
            for took in record.took
        )
        if stats.redelivered < again:
            yield f"{again} came again, and {stats}"

    def acknowledgements_are_right(self, stats: Stats) -> Iterator[str]:
        settled = [
            one
            for record in self.group.records.values()
            for one in record.settled
            if one.what == "ack"
        ]
        done = sum(one.outcome == "d" for one in settled)
        done += sum(one.count or 0 for one in self.group.up_to)
        may = sum(one.outcome == "?" for one in settled)
        may += sum(one.count is None for one in self.group.up_to) * UP_TO_MAX
        if not done <= stats.acknowledged <= done + may:
            yield f"{done} records were acknowledged, perhaps {may} more, and {stats}"

    def all_was_tried(self, count: int) -> Iterator[str]:
        if count < MANY or self.group.name == "once":
            return
        hows = {took.how for record in self.group.records.values() for took in record.took}
        whats = {one.what for record in self.group.records.values() for one in record.settled}
        wanted = {"due", "new", "own", "ack", "nack", "extend"}
        if not self.kind.is_ordered:
            wanted.add("claim")
        for name in wanted - hows - whats:
            yield f"nobody tried {name}"
        if self.kind.dead_letter and not self.group.copies:
            yield "nothing was given up"


# What would be wrong, for selfcheck.py.


@contextmanager
def changed(group: Group, place: Place, took: list[Took], settled: list[Settled]) -> Iterator[None]:
    before = group.records[place]
    group.records[place] = Record(took, settled)
    group.is_planted = True
    yield
    group.is_planted = False
    group.records[place] = before


@contextmanager
def other_stats(group: Group, **values: int) -> Iterator[None]:
    before = group.stats
    assert before
    group.stats = replace(before, **values)
    group.is_planted = True
    yield
    group.is_planted = False
    group.stats = before


@contextmanager
def other_copies(group: Group, place: Place, copies: list[Copy]) -> Iterator[None]:
    before = group.copies.pop(place)
    if copies:
        group.copies[place] = copies
    group.is_planted = True
    yield
    group.is_planted = False
    group.copies[place] = before


@contextmanager
def left(group: Group) -> Iterator[None]:
    group.left.append((0, 0))
    group.is_planted = True
    yield
    group.is_planted = False
    group.left.pop()


def plants(history: History) -> Iterator[tuple[str, AbstractContextManager[None]]]:
    for group in history.groups.values():
        if group.stats:
            yield from plants_of_sums(group)
        for place, record in group.records.items():
            # One that came twice, and was acknowledged; for an unsettled second time it is late.
            if is_plain(record) and place not in group.copies:
                yield from plants_at(group, place, record)
                break
        if group.kind.is_whole and group.name != "once":
            yield from plants_of_losses(group)
        for place, copies in group.copies.items():
            record = group.records[place]
            if not any(one.what == "ack" for one in record.settled):
                yield from plants_of_copies(group, place, copies)
                break


def is_plain(record: Record) -> bool:
    counted = len(record.took) > 1 and all(took.counts for took in record.took)
    outcomes = [one.outcome for one in record.settled if one.what == "ack"]
    whats = {one.what for one in record.settled}
    return counted and outcomes == ["d"] and whats == {"ack"}


def plants_of_sums(group: Group) -> Iterator[tuple[str, AbstractContextManager[None]]]:
    stats = group.stats
    assert stats
    name = group.name
    yield f"what is left of {name}", left(group)
    yield f"a sum of {name}", other_stats(group, acknowledged=stats.acknowledged + 1)
    yield f"what {name} lost", other_stats(group, delivered=stats.delivered - 1)
    yield f"what {name} did not deliver", other_stats(group, lag=1)
    yield (
        f"what {name} did not acknowledge",
        other_stats(group, acknowledged=0, given_up=stats.given_up + stats.acknowledged),
    )


def plants_at(
    group: Group, place: Place, record: Record
) -> Iterator[tuple[str, AbstractContextManager[None]]]:
    first, second = record.took[:2]
    ack = next(one for one in record.settled if one.what == "ack")
    end_ns = int(ack.end_ns)
    again = replace(
        second, how="due", start_ns=end_ns + 1, end_ns=end_ns + 2, deliveries=second.deliveries + 9
    )
    much = 3600 * 10**9
    later = [
        replace(took, start_ns=took.start_ns + much, end_ns=took.end_ns + much)
        for took in record.took[1:]
    ]
    acks = [replace(ack, start_ns=ack.start_ns + much, end_ns=ack.end_ns + much)]
    soon = replace(
        second,
        how="due",
        start_ns=first.end_ns + 1,
        end_ns=first.end_ns + 2,
        deliveries=first.deliveries + 1,
    )

    def plant(took: list[Took], settled: list[Settled]) -> AbstractContextManager[None]:
        return changed(group, place, took, settled)

    name, settled = group.name, record.settled
    yield f"what came to {name} after it was done", plant([*record.took, again], settled)
    yield f"what was done twice in {name}", plant(record.took, [*settled, ack])
    went_down = replace(record.took[-1], deliveries=first.deliveries)
    yield f"what was not counted in {name}", plant([*record.took[:-1], went_down], settled)
    denied = replace(ack, start_ns=first.end_ns + 1, end_ns=first.end_ns + 2, outcome="n")
    if group.kind.is_whole:
        strange = replace(first, tag="nobody/0/1/0/1")
        yield f"what came to {name} as another", plant([strange, *record.took[1:]], settled)
    if group.kind.is_ordered:
        return
    yield f"what is unknown in {name}", plant(record.took, [replace(ack, outcome="u"), *settled])
    yield f"what came to {name} too late", plant([first, *later], acks)
    yield f"what came to {name} too early", plant([first, soon], [])
    yield f"what was denied in {name}", plant(record.took, [replace(denied, who=first.who), ack])


def plants_of_losses(
    group: Group,
) -> Iterator[tuple[str, AbstractContextManager[None]]]:
    ends: dict[int, int] = defaultdict(lambda: -1)
    for one in group.up_to:
        partition, offset = one.place
        ends[partition] = max(ends[partition], offset)
    for place in group.records:
        # Elsewhere it may be one of those that somebody took and died before he told.
        if place not in group.copies and place[1] > ends[place[0]]:
            yield f"what is lost of {group.name}", changed(group, place, [], [])
            return


def plants_of_copies(
    group: Group, place: Place, copies: list[Copy]
) -> Iterator[tuple[str, AbstractContextManager[None]]]:
    wrongs = {
        "no copy": [],
        "a copy from elsewhere": [replace(copies[0], origin="main")],
        "a copy of another": [replace(copies[0], tag="nobody/0/1/0/1")],
        "a copy that came too soon": [replace(copies[0], deliveries=1)],
        "a copy without a reason": [replace(copies[0], reason="")],
    }
    for name, wrong in wrongs.items():
        yield f"{name} in {group.name}", other_copies(group, place, wrong)
