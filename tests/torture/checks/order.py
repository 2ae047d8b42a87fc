"""In ordered groups each partition is one handle's at a time, its records come in their order, and
nothing comes while something before it is not settled.

Only what is certain is reported. What a call did it did between its start and its end; what a
killed process began may have happened, or not.
"""

from __future__ import annotations

import os
import zlib
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any

from groups import ORDERS, REFUSED_MS
from history import History
from orders import PARTITIONS, Act, Handle, Order, Part

# How much later than it may something comes where nobody is stopped.
LATE_NS = 4_000_000_000 * float(os.environ.get("EDGELOG_TORTURE_PATIENCE", "1"))
# In a run with fewer deliveries than that, one kind of thing or the other may not have been tried.
MANY = 8000
# A group's time has whole milliseconds.
ROUNDED_NS = 2_000_000
MS = 1_000_000


def check(history: History) -> Iterator[str]:
    yield from keys_stay_together(history)
    for order in history.orders.values():
        yield from (f"{order.name}: {text}" for text in each_epoch_is_one_lease(order))
        yield from (f"{order.name}: {text}" for text in all_was_tried(order))
        for number, part in enumerate(order.parts):
            if any(part is one for one in order.sound):
                continue
            texts = list(Look(history, order, number, part).all())
            yield from (f"{order.name}[{number}]: {text}" for text in texts)
            if not texts:
                order.sound.append(part)


def keys_stay_together(history: History) -> Iterator[str]:
    for (topic, number), partition in history.partitions.items():
        if topic == ORDERS:
            for key in set(partition.keys.values()):
                if zlib.crc32(key.encode()) % PARTITIONS != number:
                    yield f"{key} is in {partition}"


def each_epoch_is_one_lease(order: Order) -> Iterator[str]:
    known: dict[int, tuple[int, Handle]] = {}
    for number, part in enumerate(order.parts):
        for act in part.acts():
            if act.epoch and act.is_held:
                lease = number, act.handle
                if known.setdefault(act.epoch, lease) != lease:
                    yield f"{act} has the epoch of {known[act.epoch]}"


def all_was_tried(order: Order) -> Iterator[str]:
    if sum(len(part.takes) for part in order.parts) < MANY:
        return
    wanted = {"acquired", "released", "hangs", "pauses", "joined twice", "try-close", "fenced"}
    wanted |= {"did-nack", "did-extend", "did-upto", "did-leave"}
    for name in sorted(wanted - set(order.tried)):
        yield f"nobody tried {name}"


class Look:
    """Looks at one partition of a group."""

    def __init__(self, history: History, order: Order, number: int, part: Part) -> None:
        self.history = history
        self.order = order
        self.number = number
        self.part = part
        self.group = history.groups[order.name]
        self.kind = kind = self.group.kind
        # After it has got a record, a handle has its partition for at least so long: what renews a
        # lease is written only once in a third of its time. And it has the record as long.
        self.sure_ns = min(kind.lease_ttl_ms * 2 // 3, kind.ack_timeout_ms) * MS - ROUNDED_NS
        # So has one that has settled something: that is written once in an eighth of its time.
        self.busy_ns = kind.processing_timeout_ms * 7 // 8 * MS - ROUNDED_NS
        self.late_ns = kind.ack_timeout_ms * MS + ROUNDED_NS
        self.settles_of: dict[Handle, list[Act]] = defaultdict(list)
        for act in part.settles:
            self.settles_of[act.handle].append(act)
        self.takes_of: dict[Handle, list[Act]] = defaultdict(list)
        # What came first under each lease.
        self.first_of: dict[tuple[Handle, int], Act] = {}
        for act in part.takes:
            self.takes_of[act.handle].append(act)
            self.first_of.setdefault((act.handle, act.epoch), act)

    def all(self) -> Iterator[str]:
        yield from self.epochs_rise()
        yield from self.acknowledged_in_order()
        yield from self.nothing_comes_before_its_time()
        yield from self.nobody_loses_what_he_has()
        yield from self.nothing_is_denied()
        yield from self.it_does_not_stand_still()

    def epochs_rise(self) -> Iterator[str]:
        """Also: who has lost the partition settles nothing of it."""
        acts = [act for act in self.part.acts() if act.epoch and act.is_held]
        for before, act in highest_before(acts, acts, lambda act: act.epoch):
            # It may have lost the partition and got it again, and be told that it has not these.
            is_own = before.handle == act.handle and act.outcome in ("n", "a")
            if before.epoch > act.epoch and not is_own:
                yield f"{act} came after {before}"

    def acknowledged_in_order(self) -> Iterator[str]:
        done = [act for act in self.part.settles if act.what in ("ack", "upto") and act.is_done]
        singles = [act for act in done if act.what == "ack"]
        for before, act in highest_before(singles, done, lambda act: act.place[1]):
            if before.place > act.place:
                yield f"{act} was acknowledged after {before}"
                # So is all that follows.
                return

    def settled_from(self) -> dict[int, float]:
        """When each record may have been settled for good, at the earliest."""
        places = self.history.partitions[ORDERS, self.number]
        since = dict.fromkeys(range(places.following), float("inf"))
        given_up = {offset for partition, offset in self.group.copies if partition == self.number}
        ups = [act for act in self.part.settles if act.what == "upto" and act.may_be_done]
        for act in self.part.settles:
            if act.what == "ack" and act.may_be_done:
                offset = act.place[1]
                since[offset] = min(since.get(offset, float("inf")), act.start_ns)
        least = float("inf")
        ups.sort(key=lambda act: act.place)
        for offset in reversed(range(places.following)):
            while ups and ups[-1].place[1] >= offset:
                least = min(least, ups.pop().start_ns)
            since[offset] = 0 if offset in given_up else min(since[offset], least)
        return since

    def nothing_comes_before_its_time(self) -> Iterator[str]:
        since = self.settled_from()
        ends = sorted((since_ns, offset) for offset, since_ns in since.items())
        is_open, settled = list(range(len(since))), 0
        last: dict[Handle, dict[int, Act]] = defaultdict(dict)
        # What came again, by handle.
        again: dict[Handle, list[Act]] = defaultdict(list)
        refused, extended = self.refused(), self.extended()
        takes = [act for act in self.part.takes if act.what != "own"]
        for take in sorted(takes, key=lambda act: act.end_ns):
            while settled < len(ends) and ends[settled][0] < take.end_ns:
                is_open.remove(ends[settled][1])
                settled += 1
            got = last[take.handle]
            for offset in is_open[: bisect_left(is_open, take.place[1])]:
                before = got.get(offset)
                if before is None or (take.epoch and before.epoch != take.epoch):
                    yield f"{take} came before {offset}, which is not settled"
                    break
                text = self.is_in_time(take, before, refused[take.handle], extended)
                text = text or comes_again(before, again[take.handle])
                if text:
                    yield f"{take} came after {before}, which {text}"
                    break
            if take.place[1] in got:
                again[take.handle].append(take)
            got[take.place[1]] = take

    def refused(self) -> dict[Handle, list[Act]]:
        """Those after which what is behind them comes again."""
        found: dict[Handle, list[Act]] = defaultdict(list)
        for act in self.part.settles:
            is_last = 0 < self.kind.max_deliveries <= act.deliveries
            if act.what in ("nack", "unnack") and act.is_done and not is_last:
                found[act.handle].append(act)
        return found

    def extended(self) -> dict[tuple[Handle, int], list[Act]]:
        found: dict[tuple[Handle, int], list[Act]] = defaultdict(list)
        for act in self.part.settles:
            if act.what == "extend" and act.may_be_done:
                found[act.handle, act.place[1]].append(act)
        return found

    def is_in_time(
        self,
        take: Act,
        before: Act,
        refused: list[Act],
        extended: dict[tuple[Handle, int], list[Act]],
    ) -> str:
        """What is wrong with a handle's getting a record where it has got one that lies before."""
        if self.kind.max_deliveries and before.deliveries > 1:
            return "is tried alone"
        if before.start_ns == take.start_ns:
            return ""
        offset = before.place[1]
        for act in reversed(refused):
            if act.start_ns < before.end_ns:
                break
            if act.end_ns <= take.start_ns and act.place[1] <= offset:
                return f"was refused: {act}"
        touches = [act.end_ns for act in extended.get((take.handle, offset), ())]
        touches = [end_ns for end_ns in touches if end_ns < take.start_ns]
        if take.start_ns - max([before.end_ns, *touches]) > self.late_ns:
            return "was not acknowledged in time"
        return ""

    def has_for_sure(self, take: Act, start_ns: int, end_ns: float) -> bool:
        """Whether a handle that has got a record has it, and its partition, all that time."""
        if take.what == "own" or take.end_ns > start_ns or end_ns - take.start_ns >= self.sure_ns:
            return False
        handle = take.handle
        for let in reversed(self.order.lets.get(handle.consumer, ())):
            if let.start_ns < take.start_ns:
                break
            if let.partition in (None, self.number) and let.start_ns < end_ns:
                return False
        # When its time to settle something began.
        began = [self.first_of.get((handle, take.epoch), take).start_ns]
        for act in self.settles_of.get(handle, ()):
            if act.start_ns >= end_ns:
                break
            if act.what != "extend" and act.is_done and act.end_ns <= start_ns:
                began.append(act.start_ns)
            if act.start_ns < take.start_ns or act.what == "extend":
                continue
            is_let_go = act.what in ("upto", "nack", "unnack") or act.place == take.place
            if is_let_go and act.may_be_done:
                return False
        for act in reversed(self.takes_of[handle]):
            if act.start_ns < take.end_ns:
                break
            # What is behind one that comes again is taken back.
            if act.start_ns < end_ns and act.place < take.place:
                return False
        return end_ns - max(began) < self.busy_ns

    def lately(self, act: Act) -> Iterator[Act]:
        """What was got so shortly before that it may be had for sure."""
        takes = self.part.takes
        at = bisect_left(takes, act.start_ns, key=lambda take: take.start_ns)
        while at and act.end_ns - takes[at - 1].start_ns < self.sure_ns:
            at -= 1
            yield takes[at]

    def nobody_loses_what_he_has(self) -> Iterator[str]:
        """While one has records of it and its lease lasts, no other gets anything."""
        for act in (*self.part.takes, *self.part.has):
            for take in self.lately(act):
                is_other = take.handle != act.handle
                if is_other and self.has_for_sure(take, act.start_ns, act.end_ns):
                    yield f"{act}, and {take} is not over"
                    break
        for act in self.part.fences:
            for take in self.lately(act):
                is_own = take.handle == act.handle
                if is_own and self.has_for_sure(take, act.start_ns, act.end_ns):
                    yield f"{act}, and {take} is not over"
                    break

    def nothing_is_denied(self) -> Iterator[str]:
        for act in self.part.settles:
            if act.outcome == "u" and act.what != "upto":
                yield f"{act}: unknown"
            if act.outcome not in ("n", "a"):
                continue
            for take in self.lately(act):
                is_own = take.handle == act.handle and take.place == act.place
                if is_own and self.has_for_sure(take, act.start_ns, act.end_ns):
                    yield f"{act}, and {take} is not over"
                    break

    def it_does_not_stand_still(self) -> Iterator[str]:
        kind = self.kind
        most_ms = kind.lease_ttl_ms + kind.processing_timeout_ms + kind.ack_timeout_ms + REFUSED_MS
        most_ns = most_ms * MS + LATE_NS
        there = dict(self.history.there)
        acts = [*self.part.takes, *(act for act in self.part.settles if act.is_done)]
        acts = [act for act in acts if act.end_ns <= self.history.end_ns]
        over_ns: float = 0
        for act in sorted(acts, key=lambda act: act.start_ns):
            if act.what in ("due", "new") and act.place in there:
                since_ns = max(over_ns, there[act.place])
                late_ns = act.start_ns - since_ns
                if late_ns > most_ns:
                    late_ns -= self.history.stood_still_ns(int(since_ns), act.start_ns)
                if late_ns > most_ns:
                    yield f"it stood still for {late_ns / MS:.0f} ms before {act}"
            over_ns = max(over_ns, act.end_ns)
            there[act.place] = min(there.get(act.place, int(act.end_ns)), int(act.end_ns))


def comes_again(before: Act, again: list[Act]) -> str:
    """What is behind a record that came again comes again, too, behind it."""
    for act in reversed(again):
        if act.start_ns < before.end_ns:
            break
        if act.place < before.place:
            return f"is behind {act}"
    return ""


def highest_before(
    earlier: list[Act], acts: list[Act], value: Callable[[Act], int]
) -> Iterator[tuple[Act, Act]]:
    """For each act the one with the highest value of those that were over before it began."""
    ended = sorted(earlier, key=lambda act: act.end_ns)
    highest, at = None, 0
    for act in sorted(acts, key=lambda act: act.start_ns):
        while at < len(ended) and ended[at].end_ns <= act.start_ns:
            if highest is None or value(ended[at]) > value(highest):
                highest = ended[at]
            at += 1
        if highest is not None:
            yield highest, act


# What would be wrong, for selfcheck.py.

NOBODY = Handle("nobody/0", 1)


@contextmanager
def other_part(order: Order, number: int, part: Part) -> Iterator[None]:
    before = order.parts[number]
    part.sort()
    order.parts[number] = part
    yield
    order.parts[number] = before


@contextmanager
def other_key(keys: dict[int, str], offset: int) -> Iterator[None]:
    before = keys[offset]
    elsewhere = (zlib.crc32(before.encode()) + 1) % PARTITIONS
    others = (f"other-{i}" for i in range(10**6))
    keys[offset] = next(key for key in others if zlib.crc32(key.encode()) % PARTITIONS == elsewhere)
    yield
    keys[offset] = before


@contextmanager
def nothing_tried(order: Order) -> Iterator[None]:
    before = order.tried.copy()
    order.tried.clear()
    yield
    order.tried.update(before)


def plants(history: History) -> Iterator[tuple[str, AbstractContextManager[None]]]:
    for (topic, number), partition in history.partitions.items():
        if topic == ORDERS and partition.keys:
            yield f"a key in {topic}[{number}]", other_key(partition.keys, min(partition.keys))
            break
    for order in history.orders.values():
        if sum(len(part.takes) for part in order.parts) >= MANY:
            yield f"what was not tried in {order.name}", nothing_tried(order)
        found: set[str] = set()
        for number, part in enumerate(order.parts):
            for name, wrong in plants_in(Look(history, order, number, part)):
                if name not in found:
                    found.add(name)
                    yield f"{name} in {order.name}", other_part(order, number, wrong)


def with_more(
    part: Part,
    *,
    takes: tuple[Act, ...] = (),
    settles: tuple[Act, ...] = (),
    has: tuple[Act, ...] = (),
    fences: tuple[Act, ...] = (),
) -> Part:
    return Part(
        [*part.takes, *takes], [*part.settles, *settles], [*part.has, *has], [*part.fences, *fences]
    )


def after(act: Act, ns: int, **words: Any) -> Act:
    """Like an act, and so much later."""
    start_ns = int(act.end_ns) + ns
    return replace(act, start_ns=start_ns, end_ns=start_ns + 1, **words)


def plants_in(look: Look) -> Iterator[tuple[str, Part]]:
    part = look.part
    held = [act for act in part.acts() if act.epoch and act.is_held]
    if held:
        last = max(held, key=lambda act: act.epoch)
        lower = next((act for act in held if act.epoch < last.epoch), None)
        yield "an epoch of two", with_more(part, has=(after(last, 1, handle=NOBODY),))
        if lower:
            old = after(last, 1, handle=lower.handle, epoch=lower.epoch, place=lower.place)
            yield "what came under an old epoch", with_more(part, takes=(replace(old, what="due"),))
            late = replace(old, what="ack", outcome="d")
            yield "what one who was fenced has settled", with_more(part, settles=(late,))
    for act in part.settles:
        if act.what == "ack" and act.is_done and act.place[1] > 0:
            back = after(act, 1, place=(act.place[0], act.place[1] - 1), epoch=0)
            yield "what was acknowledged out of order", with_more(part, settles=(back,))
            break
    for take in part.takes:
        if take.what != "own":
            again = replace(take, start_ns=take.start_ns - 10**13, end_ns=take.end_ns - 10**13)
            yield "what stood still", Part([again, take])
            break
    yield from plants_behind(look)
    for take in part.takes:
        if look.has_for_sure(take, int(take.end_ns) + 1, int(take.end_ns) + 2):
            to_other = after(take, 1, handle=NOBODY, what="has", epoch=0)
            yield "what was another's", with_more(part, has=(to_other,))
            yield "one who was fenced", with_more(part, fences=(after(take, 1, what="fenced"),))
            denied = after(take, 1, what="ack", outcome="n")
            yield "what was denied", with_more(part, settles=(denied,))
            unknown = replace(denied, outcome="u")
            yield "what was unknown", with_more(part, settles=(unknown,))
            break


def plants_behind(look: Look) -> Iterator[tuple[str, Part]]:
    """What comes although something before it is not settled."""
    part, since = look.part, look.settled_from()
    for take in part.takes:
        offset = take.place[1]
        if take.what == "own" or not take.epoch or since[offset] <= take.end_ns + 9:
            continue
        behind = after(take, 5, place=(look.number, offset + 1), deliveries=1)
        other = replace(behind, handle=NOBODY, epoch=0)
        yield "what came to another before its time", with_more(part, takes=(other,))
        yield (
            "what came again without what is before",
            with_more(part, takes=(replace(behind, epoch=take.epoch + 1),)),
        )
        alone = after(take, 1)
        skipped = after(take, 5, place=(look.number, offset + 2), deliveries=1)
        before = replace(take, place=(look.number, offset + 1), deliveries=1)
        if since.get(offset + 1, 0) > take.end_ns + 9:
            yield (
                "what came although one behind one that came again had not",
                with_more(part, takes=(before, alone, skipped)),
            )
        refused = after(take, 1, what="nack", outcome="d", deliveries=1)
        yield "what came behind a refused one", with_more(part, takes=(behind,), settles=(refused,))
        if look.kind.max_deliveries and take.deliveries > 1:
            yield "what came beside one that is tried alone", with_more(part, takes=(behind,))
        late = after(take, look.late_ns + 1, place=(look.number, offset + 1))
        settles = [act for act in part.settles if act.what != "upto" and act.place != take.place]
        if take is [one for one in part.takes if one.place == take.place][-1]:
            yield "what came behind a late one", Part([*part.takes, late], settles)
