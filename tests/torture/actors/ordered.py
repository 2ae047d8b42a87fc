"""Takes records of ordered groups, two consumers in two threads: acknowledges what it has of a
partition from the oldest on, refuses, forgets, stands still for longer than its leases last, gives
partitions back, goes and comes again; and appends what all of them take.
"""

from __future__ import annotations

import random
import sys
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import edgelog

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from actor import Actor
from groups import KINDS, ORDERS, Place

GROUPS = [name for name, kind in KINDS.items() if kind.is_ordered]
PARTITIONS = 8
BATCH_MAX = 12
TAKEN_MAX = 64
HELD_MAX = 256
KEYS = 40
# In the final group nobody acknowledges what was appended with a multiple of it as its number.
POISON = 29
OPTIONS: dict[str, dict[str, Any]] = {"patient": {}, "final": {"backoff_ms": 30}}
DURABILITIES = ["buffered"] * 4 + ["written"] * 15 + ["synced"]
MARKS = ["", "+1"]

Take = Literal["due", "new", "own"]


@dataclass(frozen=True)
class Held:
    deliveries: int
    is_poison: bool


@dataclass
class Part:
    """What a consumer has of a partition and has not settled, by offset. At the barrier is one that
    it lets time out: it settles neither that one nor any behind it before it comes again.
    """

    epoch: int = 0
    barrier: float = float("inf")
    held: dict[int, Held] = field(default_factory=dict)

    def hold(self, offset: int, held: Held, comes_again: bool) -> None:
        if not self.epoch:
            return
        if comes_again:
            if offset == self.barrier:
                self.barrier = float("inf")
            # What is behind it comes again, too.
            self.held = {one: held for one, held in self.held.items() if one < offset}
        self.held[offset] = held
        self.held = dict(sorted(self.held.items()))

    def before_barrier(self) -> list[int]:
        return [offset for offset in self.held if offset < self.barrier]

    def to_acknowledge(self, dice: random.Random, most: int) -> list[int]:
        """From the oldest on, but no poison."""
        offsets = self.before_barrier()[:most]
        if offsets and dice.randrange(3) == 0:
            offsets = offsets[: 1 + dice.randrange(len(offsets))]
        poison = (i for i, offset in enumerate(offsets) if self.held[offset].is_poison)
        return offsets[: next(poison, len(offsets))]


@dataclass(frozen=True)
class Lost:
    """A call was told that this partition is lost."""

    partition: int


class Seat:
    """A consumer of each group, in a thread."""

    def __init__(self, actor: Worker, mark: str) -> None:
        self.actor = actor
        self.mark = mark
        self.dice = random.Random(actor.dice.getrandbits(31))
        self.consumers: dict[str, edgelog.Consumer] = {}
        self.parts: dict[str, list[Part]] = {}

    def tell(self, kind: str, name: str, *words: object) -> None:
        self.actor.journal(kind, f"{name}{self.mark}", *words)

    def clear_all(self, name: str) -> None:
        self.parts[name] = [Part() for _ in range(PARTITIONS)]

    def some_partition(self, name: str) -> int:
        """One of which it has something, if there is one."""
        numbers = [number for number, part in enumerate(self.parts[name]) if part.held]
        return self.dice.choice(numbers or [0])

    def call(self, what: str, call: Callable[[], Any]) -> Any:
        """What a call answers; None if it failed, Lost if it was told of a loss."""

        def guarded() -> Any:
            try:
                answer = call()
            except edgelog.FencedError as error:
                return Lost(PARTITIONS if error.partition is None else error.partition)
            return True if answer is None else answer

        return self.actor.timed(what, guarded)

    def epoch_of(self, name: str, partition: int) -> int:
        consumer = self.consumers[name]
        while True:
            epoch = self.call("epoch", lambda: consumer.epoch(partition))
            if isinstance(epoch, Lost):
                return 0
            if epoch is not None:
                return int(epoch)
            time.sleep(0.001)

    def was_fenced(self, name: str, call: str, start: int, lost: Lost) -> None:
        """It has lost a partition, and maybe more than that one."""
        self.tell("fenced", name, call, start, time.monotonic_ns(), lost.partition)
        for partition, part in enumerate(self.parts[name]):
            if not part.epoch:
                continue
            epoch = self.epoch_of(name, partition)
            if epoch != part.epoch:
                self.parts[name][partition] = Part()
            elif partition == lost.partition:
                self.actor.journal("fault", f"{call}: fenced, and {partition} is its own as before")

    def take(self, name: str, take: Take) -> None:
        for number, part in enumerate(self.parts[name]):
            if len(part.held) > HELD_MAX:
                # What it has no room for is better elsewhere.
                self.release(name, number)
                return
        options: dict[str, Any] = {"take": take}
        if self.dice.randrange(4) == 0:
            options["max_bytes"] = 1 + self.dice.randrange(2000)
        most = 1 + self.dice.randrange(TAKEN_MAX)
        timeout = self.dice.choice([0, 0, self.dice.randrange(60) / 1000])
        consumer, start = self.consumers[name], time.monotonic_ns()
        records = self.call(take, lambda: consumer.read(most, timeout, **options))
        if isinstance(records, Lost):
            self.was_fenced(name, take, start, records)
        elif records:
            self.hold(name, take, start, records)

    def hold(self, name: str, take: Take, start: int, records: list[edgelog.Record]) -> None:
        tags = [(record.value or b"").split(b" ")[0].decode() for record in records]
        items = [
            f"{record.partition}:{record.offset}:{record.deliveries}:{tag}"
            for record, tag in zip(records, tags, strict=True)
        ]
        self.tell("took", name, take, start, time.monotonic_ns(), *items)
        start = time.monotonic_ns()
        partitions = sorted({record.partition for record in records})
        epochs = {partition: self.epoch_of(name, partition) for partition in partitions}
        words = [f"{partition}:{epoch}" for partition, epoch in epochs.items()]
        self.tell("has", name, start, time.monotonic_ns(), *words)
        for partition, epoch in epochs.items():
            # What it has just got is worked on only under the epoch that it was told for.
            if self.parts[name][partition].epoch != epoch:
                self.parts[name][partition] = Part(epoch)
        for record, tag in zip(records, tags, strict=True):
            is_poison = name == "final" and int(tag.split("/")[2]) % POISON == 0
            held = Held(record.deliveries, is_poison)
            self.parts[name][record.partition].hold(record.offset, held, take != "own")

    def tell_try(self, name: str, what: str, places: Iterable[Place]) -> int:
        start = time.monotonic_ns()
        self.tell(f"try-{what}", name, start, *(f"{part}:{offset}" for part, offset in places))
        return start

    def settle(
        self, name: str, what: str, places: list[Place], call: Callable[[list[Place]], Any]
    ) -> list[str] | None:
        """The outcomes, if it was done."""
        start = self.tell_try(name, what, places)
        outcomes = self.call(what, lambda: call(places))
        if outcomes is None:
            return None
        lost = outcomes if isinstance(outcomes, Lost) else None
        letters = "f" * len(places) if lost else "".join(outcome[0] for outcome in outcomes)
        self.tell(f"did-{what}", name, start, time.monotonic_ns(), letters)
        if lost:
            self.was_fenced(name, what, start, lost)
            return None
        return list(letters)

    def acknowledge(self, name: str) -> None:
        first, is_one = self.dice.randrange(PARTITIONS), self.dice.randrange(3) == 0
        places: list[Place] = []
        for number in [*range(first, PARTITIONS), *range(first)]:
            part = self.parts[name][number]
            offsets = part.to_acknowledge(self.dice, TAKEN_MAX - len(places))
            places += [(number, offset) for offset in offsets]
            if len(places) == TAKEN_MAX or (is_one and places):
                break
        if not places:
            return
        outcomes = self.settle(name, "ack", places, self.consumers[name].ack) or ()
        for (number, offset), outcome in zip(places, outcomes, strict=False):
            part = self.parts[name][number]
            if outcome != "n":
                part.held.pop(offset, None)
            elif part.held:
                # It has not what it believed, and had better have nothing.
                self.release(name, number)

    def ack_up_to(self, name: str) -> None:
        number = self.some_partition(name)
        part, consumer = self.parts[name][number], self.consumers[name]
        offsets = part.to_acknowledge(self.dice, HELD_MAX)
        if not offsets:
            return
        to = number, offsets[-1]
        start = self.tell_try(name, "upto", [to])
        count = self.call("up-to", lambda: consumer.ack_up_to(to))
        if count is None:
            return
        lost = count if isinstance(count, Lost) else None
        self.tell("did-upto", name, start, time.monotonic_ns(), "f" if lost else count)
        if lost:
            self.was_fenced(name, "upto", start, lost)
            return
        for offset in offsets:
            del part.held[offset]

    def refuse(self, name: str, is_any: bool) -> None:
        """Refuses one that it has, with what is behind it or without; or the poison in front."""
        number = self.some_partition(name)
        part, consumer = self.parts[name][number], self.consumers[name]
        offsets = part.before_barrier()
        if not offsets or not (is_any or part.held[offsets[0]].is_poison):
            return
        at = self.dice.randrange(len(offsets)) if is_any else 0
        most = TAKEN_MAX if is_any and self.dice.randrange(2) else 1
        first = offsets[at]
        places = [(number, offset) for offset in offsets[at : at + most]]
        is_last = 0 < KINDS[name].max_deliveries <= part.held[first].deliveries
        options: dict[str, Any] = {"reason": f"refused by {self.actor.name}"}
        what = "nack"
        if self.dice.randrange(2):
            options["delay_ms"] = self.dice.randrange(200)
        if name == "patient" and self.dice.randrange(3) == 0:
            options["uncounted"] = True
            what = "unnack"
        outcomes = self.settle(name, what, places, lambda words: consumer.nack(words, **options))
        # What is behind a refused one comes again, but not what is behind one that is given up.
        if outcomes and outcomes[0] == "n":
            self.release(name, number)
        elif outcomes and (outcomes[0] != "d" or is_last):
            part.held.pop(first, None)
        elif outcomes:
            part.held = {offset: held for offset, held in part.held.items() if offset < first}

    def extend(self, name: str) -> None:
        number = self.some_partition(name)
        offsets = self.parts[name][number].before_barrier()[:TAKEN_MAX]
        places = [(number, offset) for offset in offsets]
        if places:
            self.settle(name, "extend", places, self.consumers[name].extend)

    def let_time_out(self, name: str) -> None:
        part = self.parts[name][self.some_partition(name)]
        # One that is given up then does not come again.
        most = KINDS[name].max_deliveries or float("inf")
        offsets = [offset for offset, held in part.held.items() if held.deliveries < most]
        if offsets:
            part.barrier = min(part.barrier, self.dice.choice(offsets))

    def acquire(self, name: str, ttl_ms: int) -> bool:
        consumer, start = self.consumers[name], time.monotonic_ns()
        self.tell("try-acquire", name, start, ttl_ms)
        leases = self.call("acquire", lambda: consumer.acquire(ttl_ms))
        if isinstance(leases, Lost):
            self.was_fenced(name, "acquire", start, leases)
        if leases is None or isinstance(leases, Lost):
            return False
        epochs = {lease.partition: lease.epoch for lease in leases}
        words = [f"{partition}:{epoch}" for partition, epoch in epochs.items()]
        self.tell("acquired", name, start, time.monotonic_ns(), ttl_ms, *words)
        # It may have lost one, because it settled nothing of it, and got it again at once.
        for partition, part in enumerate(self.parts[name]):
            if part.epoch != epochs.get(partition, 0):
                self.parts[name][partition] = Part()
        return True

    def hang(self, name: str) -> None:
        """Stays live and settles nothing, until what it has is taken from it."""
        end = time.monotonic() + (KINDS[name].processing_timeout_ms + 200) / 1000
        self.tell("hangs", name)
        while not self.actor.ends and time.monotonic() < end and self.acquire(name, 0):
            time.sleep(KINDS[name].lease_ttl_ms / 4000)

    def stand_still(self, name: str) -> None:
        self.tell("pauses", name)
        time.sleep((KINDS[name].lease_ttl_ms + 50 + self.dice.randrange(300)) / 1000)

    def release(self, name: str, number: int | None) -> None:
        consumer, start = self.consumers[name], time.monotonic_ns()
        self.tell("try-release", name, start, "all" if number is None else number)
        done = self.call("release", lambda: consumer.release(number))
        if isinstance(done, Lost):
            # That it never had it is no loss.
            if self.parts[name][done.partition].epoch:
                self.was_fenced(name, "release", start, done)
        elif done:
            self.tell("released", name, start, time.monotonic_ns())
            for partition in range(PARTITIONS) if number is None else [number]:
                self.parts[name][partition] = Part()

    def leave(self, name: str) -> None:
        group, start = self.actor.groups[name], self.tell_try(name, "leave", ())
        consumer = f"{self.actor.name}{self.mark}"
        count = self.actor.timed("leave", lambda: group.remove_consumer(consumer), "NOT_FOUND")
        if count is not None:
            self.tell("did-leave", name, start, time.monotonic_ns(), count)
            self.clear_all(name)

    def join(self, name: str) -> None:
        group, consumer = self.actor.groups[name], None
        self.tell("try-join", name, time.monotonic_ns())
        while not consumer:
            start = time.monotonic_ns()
            consumer = self.call(
                "consumer", lambda: group.consumer(f"{self.actor.name}{self.mark}")
            )
        self.consumers[name] = consumer
        self.tell("joined", name, start, time.monotonic_ns())
        self.clear_all(name)

    def close(self, name: str) -> None:
        self.tell("try-close", name, time.monotonic_ns())
        self.actor.done("consumer-close", self.consumers[name].close)

    def go_and_come(self, name: str) -> None:
        self.close(name)
        time.sleep(self.dice.choice([0, self.dice.randrange(50) / 1000]))
        self.join(name)

    def join_twice(self, name: str) -> None:
        """Another handle of the same name: what this one has is lost."""
        group, old = self.actor.groups[name], self.consumers[name]
        self.tell("try-join", name, time.monotonic_ns())
        start = time.monotonic_ns()
        new = self.call("consumer", lambda: group.consumer(old.name))
        if new is None:
            return
        end = time.monotonic_ns()
        for number, part in enumerate(self.parts[name]):
            if not part.held:
                continue
            place = number, next(iter(part.held))
            began = self.tell_try(name, "ack", [place])
            outcome = self.call("ack", lambda: old.ack(place))  # noqa: B023
            if outcome is not None:
                letter = "f" if isinstance(outcome, Lost) else outcome[0]
                self.tell("did-ack", name, began, time.monotonic_ns(), letter)
                if letter != "f":
                    self.actor.journal("fault", "ack: the handle from before acknowledges")
            break
        self.consumers[name] = new
        self.tell("joined", name, start, end, "twice")
        self.clear_all(name)
        if self.dice.randrange(2):
            self.take(name, "due")
        # That is no reason for the new one to lose anything.
        self.actor.done("consumer-close", old.close)

    def look(self, name: str) -> None:
        """Sums that have to agree whenever somebody looks."""
        group = self.actor.groups[name]
        stats = self.call("group-stats", group.stats)
        if stats:
            gone = stats.acknowledged + stats.pending + stats.expired + stats.given_up
            if stats.delivered != gone or stats.expired or stats.skipped:
                self.actor.journal("fault", f"stats: {stats}")
        leases = self.call("leases", group.leases)
        if leases is not None:
            epochs = [lease.epoch for lease in leases if lease.epoch]
            places = [lease.partition for lease in leases]
            if places != list(range(PARTITIONS)) or len(epochs) != len(set(epochs)):
                self.actor.journal("fault", f"leases: {leases}")

    def act(self) -> None:
        number, name = self.dice.randrange(1000), self.dice.choice(GROUPS)
        # The numbers of a life rise in each partition, so that only one thread appends.
        if number < 150 and not self.mark:
            self.actor.append(1 + self.dice.randrange(2) * self.dice.randrange(BATCH_MAX))
        elif number < 430:
            self.take(name, self.dice.choice(["due", "due", "due", "due", "new"]))
        elif number < 760:
            self.acknowledge(name)
        elif number < 820:
            self.ack_up_to(name)
        elif number < 890:
            self.refuse(name, number >= 870)
        elif number < 910:
            self.extend(name)
        elif number < 923:
            self.let_time_out(name)
        elif number < 940:
            self.acquire(name, self.dice.randrange(3) * KINDS[name].lease_ttl_ms // 2)
        else:
            self.act_seldom(number, name)
        time.sleep(self.dice.randrange(12) / 1000)

    def act_seldom(self, number: int, name: str) -> None:
        if number < 950:
            self.release(name, self.dice.choice([*[self.dice.randrange(PARTITIONS)] * 3, None]))
        elif number < 970:
            self.take(name, "own")
        elif number < 980:
            self.look(name)
        elif number < 983:
            self.leave(name)
        elif number < 989:
            self.go_and_come(name)
        elif number < 995:
            self.join_twice(name)
        elif number < 998:
            self.stand_still(name)
        else:
            self.hang(name)

    def work(self) -> None:
        for name in GROUPS:
            self.join(name)
        while not self.actor.ends:
            self.act()
        for name in GROUPS:
            self.close(name)


class Worker(Actor):
    orders: edgelog.Topic
    groups: dict[str, edgelog.Group]
    sequence = 0

    def open(self) -> edgelog.Log | None:
        maintenance: Any = self.dice.choice(["background"] * 7 + ["manual"])
        busy_timeout = self.dice.choice([1.0, 0])
        options = {"maintenance": maintenance, "busy_timeout": busy_timeout}
        log = self.timed("open", lambda: edgelog.open(self.path, **options))
        words: dict[str, Any] = {"partitions": PARTITIONS, "segment_bytes": 32768}
        orders = self.timed("topic", lambda: log.topic(ORDERS, **words)) if log else None
        self.groups = {}
        for name in GROUPS if orders else ():
            group = self.timed("group", lambda: self.group(orders, name))  # noqa: B023
            if group:
                self.groups[name] = group
        if orders and len(self.groups) == len(GROUPS):
            self.orders = orders
            return log
        if log:
            self.done("close", log.close)
        return None

    @staticmethod
    def group(orders: Any, name: str) -> edgelog.Group:
        kind = KINDS[name]
        group: edgelog.Group = orders.group(
            name,
            ordered=True,
            ack_timeout_ms=kind.ack_timeout_ms,
            max_deliveries=kind.max_deliveries,
            dead_letter=kind.dead_letter,
            lease_ttl_ms=kind.lease_ttl_ms,
            processing_timeout_ms=kind.processing_timeout_ms,
            **OPTIONS[name],
        )
        return group

    def append(self, count: int) -> None:
        durability: Any = self.dice.choice(DURABILITIES)
        self.sequence += 1
        tag = f"{self.name}/{self.life}/{self.sequence}"
        key = f"key-{self.dice.randrange(KEYS)}"
        records = [
            (key, f"{tag}/{i}/{count} " + "x" * self.dice.randrange(100)) for i in range(count)
        ]
        first = self.timed(
            durability, lambda: self.orders.append_batch(records, durability=durability)
        )
        if first:
            end, (partition, offset) = time.monotonic_ns(), first
            self.journal("ack", ORDERS, partition, offset, count, durability, self.sequence)
            if durability != "buffered":
                self.journal("there", ORDERS, partition, offset, count, end)

    def run(self) -> None:
        log = None
        while not self.ends and not log:
            log = self.open()
            time.sleep(0.001)
        if log:
            seats = [Seat(self, mark) for mark in MARKS]
            threads = [threading.Thread(target=seat.work) for seat in seats[1:]]
            for thread in threads:
                thread.start()
            seats[0].work()
            for thread in threads:
                thread.join()
            done = [self.done("group-close", one.close) for one in self.groups.values()]
            done.append(self.done("topic-close", self.orders.close))
            done.append(self.done("close", log.close))
            self.journal("closed" if all(done) else "closed-badly")
        self.journal("end")


Worker().run()
