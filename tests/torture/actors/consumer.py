"""Takes records of groups, acknowledges, refuses, extends and takes over, leaves and comes back;
and appends what the others take.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import edgelog

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from actor import Actor
from groups import JOBS, KINDS, Place

GROUPS = [name for name, kind in KINDS.items() if kind.topic == JOBS]
PARTITIONS = 2
BATCH_MAX = 12
TAKEN_MAX = 64
HELD_MAX = 400
# In the strict group nobody acknowledges what was appended with a multiple of it as its number.
POISON = 23
OPTIONS: dict[str, dict[str, Any]] = {
    "strict": {"backoff_ms": 50},
    "loose": {"consumer_ttl_ms": 900},
    "once": {},
}
DURABILITIES = ["buffered"] * 6 + ["written"] * 13 + ["synced"]


def tag_of(record: edgelog.Record) -> str:
    return (record.value or b"").split(b" ")[0].decode()


class Worker(Actor):
    log: edgelog.Log | None = None
    jobs: edgelog.Topic
    groups: dict[str, edgelog.Group]
    consumers: dict[str, edgelog.Consumer]
    sequence = 0

    def __init__(self) -> None:
        super().__init__()
        # What it has taken in this life and not settled, and whether it is poison.
        self.held: dict[str, dict[Place, bool]] = {name: {} for name in GROUPS}

    def open(self) -> bool:
        maintenance: Any = self.dice.choice(["background"] * 7 + ["manual"])
        busy_timeout = self.dice.choice([1.0, 0])
        options = {"maintenance": maintenance, "busy_timeout": busy_timeout}
        self.log = log = self.timed("open", lambda: edgelog.open(self.path, **options))
        self.groups, self.consumers = {}, {}
        if not log:
            return False
        words: dict[str, Any] = {"partitions": PARTITIONS, "segment_bytes": 32768}
        jobs = self.timed("topic", lambda: log.topic(JOBS, **words))
        for name in GROUPS if jobs else ():
            self.join(jobs, name)
        if jobs and len(self.consumers) == len(GROUPS):
            self.jobs = jobs
            return True
        self.done("close", log.close)
        self.log = None
        return False

    def join(self, jobs: Any, name: str) -> None:
        kind = KINDS[name]
        options = {
            **OPTIONS[name],
            "ack_timeout_ms": kind.ack_timeout_ms,
            "max_deliveries": kind.max_deliveries,
        }
        if kind.dead_letter:
            options["dead_letter"] = kind.dead_letter
        group = self.timed("group", lambda: jobs.group(name, **options))
        consumer = self.timed("consumer", lambda: group.consumer(self.name)) if group else None
        if group and consumer:
            self.groups[name] = group
            self.consumers[name] = consumer

    def close(self) -> None:
        assert self.log
        done = [self.done("consumer-close", one.close) for one in self.consumers.values()]
        done += [self.done("group-close", one.close) for one in self.groups.values()]
        done.append(self.done("topic-close", self.jobs.close))
        done.append(self.done("close", self.log.close))
        self.log = None
        self.journal("closed" if all(done) else "closed-badly")

    def open_again(self) -> None:
        while not self.ends and not self.open():
            time.sleep(0.001)

    def append(self, count: int) -> None:
        durability: Any = self.dice.choice(DURABILITIES)
        self.sequence += 1
        tag = f"{self.name}/{self.life}/{self.sequence}"
        records = [
            (self.name, f"{tag}/{i}/{count} " + "x" * self.dice.randrange(200))
            for i in range(count)
        ]
        to = {"partition": self.dice.randrange(PARTITIONS), "durability": durability}
        answer = self.timed(durability, lambda: self.jobs.append_batch(records, **to))
        if answer:
            partition, offset = answer
            self.journal("ack", JOBS, partition, offset, count, durability, self.sequence)

    def hold(self, name: str, how: str, start: int, records: Iterable[edgelog.Record]) -> None:
        items = []
        for record in records:
            tag, place = tag_of(record), (record.partition, record.offset)
            items.append(f"{place[0]}:{place[1]}:{record.deliveries}:{tag}")
            if name != "once":
                is_poison = name == "strict" and int(tag.split("/")[2]) % POISON == 0
                self.held[name][place] = is_poison
        if items:
            self.journal("took", name, how, start, time.monotonic_ns(), *items)

    def has_room(self, name: str) -> bool:
        return len(self.held[name]) + TAKEN_MAX <= HELD_MAX

    def take(self, name: str, take: Any) -> None:
        most, timeout = 1 + self.dice.randrange(TAKEN_MAX), self.dice.choice([0, 0, 0.03, 0.06])
        options: dict[str, Any] = {"take": take, "at_most_once": name == "once"}
        if self.dice.randrange(4) == 0:
            options["max_bytes"] = 1 + self.dice.randrange(2000)
        consumer, start = self.consumers[name], time.monotonic_ns()
        records = self.timed(take, lambda: consumer.read(most, timeout, **options))
        self.hold(name, take, start, records or ())
        lost = consumer.last_delivery
        if records is not None and (lost.expired or lost.skipped or lost.records != len(records)):
            self.journal("fault", f"took {len(records)}: {lost}")

    def take_own(self, name: str) -> None:
        """What it left before it died; another may be faster."""
        self.held[name].clear()
        for _ in range(4):
            if self.has_room(name):
                self.take(name, "own")

    def claim(self, name: str) -> None:
        idle_ms, consumer = KINDS[name].claim_idle_ms, self.consumers[name]
        uncounted = name == "loose" and self.dice.randrange(3) == 0
        most, start = 1 + self.dice.randrange(TAKEN_MAX), time.monotonic_ns()
        records = self.timed(
            "claim", lambda: consumer.claim_idle(idle_ms, max=most, uncounted=uncounted)
        )
        self.hold(name, "uncounted" if uncounted else "claim", start, records or ())

    def tell_try(self, name: str, what: str, places: Iterable[Place]) -> int:
        start = time.monotonic_ns()
        self.journal(f"try-{what}", name, start, *(f"{part}:{offset}" for part, offset in places))
        return start

    def settle(self, name: str, what: str) -> None:
        """Settles some that it holds, from the oldest on, or from anywhere."""
        held, consumer = list(self.held[name].items()), self.consumers[name]
        if not held:
            return
        first = self.dice.randrange(len(held)) if self.dice.randrange(4) == 0 else 0
        most = self.dice.choice([1, TAKEN_MAX, TAKEN_MAX, TAKEN_MAX])
        is_poison = held[first][1]
        places = [place for place, poison in held[first : first + most] if poison == is_poison]
        if what == "ack" and is_poison:
            what = "nack"
        call: Any = {"ack": consumer.ack, "extend": consumer.extend}.get(what, consumer.nack)
        options: dict[str, Any] = {}
        if what == "nack":
            options["reason"] = f"refused by {self.name}"
            if self.dice.randrange(2):
                options["delay_ms"] = self.dice.randrange(300)
            if name == "loose" and self.dice.randrange(3) == 0:
                options["uncounted"] = True
                what = "unnack"
        start = self.tell_try(name, what, places)
        outcomes = self.timed(what, lambda: call(places, **options))
        if outcomes is None:
            return
        letters = "".join(outcome[0] for outcome in outcomes)
        self.journal(f"did-{what}", name, start, time.monotonic_ns(), letters)
        if what != "extend":
            for place in places:
                del self.held[name][place]

    def ack_up_to(self, name: str) -> None:
        held = self.held[name]
        if not held:
            return
        last = self.dice.choice(list(held))
        to = [one for one in held if one[0] == last[0] and one[1] <= last[1]]
        if any(held[one] for one in to):
            return
        consumer, start = self.consumers[name], self.tell_try(name, "upto", [last])
        count = self.timed("up-to", lambda: consumer.ack_up_to(last))
        if count is not None:
            self.journal("did-upto", name, start, time.monotonic_ns(), count)
            for one in to:
                del held[one]

    def leave(self, name: str) -> None:
        group, start = self.groups[name], self.tell_try(name, "leave", ())
        count = self.timed("leave", lambda: group.remove_consumer(self.name), "NOT_FOUND")
        if count is not None:
            self.journal("did-leave", name, start, time.monotonic_ns(), count)
            self.held[name].clear()

    def look(self, name: str) -> None:
        """Sums that have to agree whenever somebody looks."""
        group = self.groups[name]
        stats = self.timed("group-stats", group.stats)
        if stats:
            gone = stats.acknowledged + stats.pending + stats.expired + stats.given_up
            if stats.delivered != gone or stats.expired or stats.skipped:
                self.journal("fault", f"stats: {stats}")
        pending = self.timed("pending", lambda: group.pending(max=1000)) or []
        places = [(one.partition, one.offset) for one in pending]
        if places != sorted(set(places)):
            self.journal("fault", f"pending: {places}")

    def act(self) -> None:
        number, name = self.dice.randrange(1000), self.dice.choice(GROUPS)
        if number < 160:
            self.append(1 + self.dice.randrange(2) * self.dice.randrange(BATCH_MAX))
        elif name == "once" or (number < 550 and self.has_room(name)):
            self.take(name, self.dice.choice(["due", "due", "due", "new"]))
        elif number < 800:
            self.settle(name, "ack")
        elif number < 860:
            self.settle(name, "nack" if number < 830 else "extend")
        elif number < 900:
            self.ack_up_to(name)
        elif number < 940 and self.has_room(name):
            self.claim(name)
        elif number < 960:
            self.take_own(name)
        elif number < 985:
            self.look(name)
        elif number < 997:
            self.leave(name)
        else:
            self.close()
            self.open_again()
        if self.dice.randrange(2):
            time.sleep(self.dice.randrange(10) / 1000)

    def run(self) -> None:
        self.open_again()
        for name in ("strict", "loose"):
            if self.log and self.dice.randrange(4):
                self.take_own(name)
        while not self.ends:
            self.act()
        if self.log:
            self.close()
        self.journal("end")


Worker().run()
