"""Appends keyed records and tombstones to topics that are compacted: by their rules in the
background, when asked, and in a loop of its own; and reads them meanwhile."""

from __future__ import annotations

import sys
import time
from collections import deque
from datetime import timedelta
from pathlib import Path
from typing import Any

import edgelog
from edgelog import keep_all, keep_for, keep_last, keep_nothing

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from actor import TopicsActor

RULES, AGED, OWN = "compact-rules", "compact-aged", "compact-own"
SMALL: dict[str, Any] = {"segment_bytes": 8192, "compact_trigger_bytes": 16384}
TOPICS: dict[str, dict[str, Any]] = {
    RULES: {
        **SMALL,
        "partitions": 2,
        "compaction_keys_max": 16,
        "keep": {
            "last/": keep_last(3),
            "mine/": keep_last(2),
            "all/": keep_all(),
            "none/": keep_nothing(),
            "for/": keep_for(timedelta(seconds=2)),
        },
    },
    AGED: {**SMALL, "min_garbage_percent": 1, "tombstone_ms": 500, "keep": {"": keep_last(1)}},
    OWN: {**SMALL, "min_garbage_percent": 1},
}
DURABILITIES = ["buffered"] * 6 + ["written"] * 12 + ["synced"]
BATCH_MAX = 8


class Compactor(TopicsActor):
    kinds = TOPICS
    in_background = 3
    sequence = 0
    # Of RULES: where records of its own are that nobody may remove, and its newest ones.
    stays: deque[tuple[int, int]]
    newest: dict[int, int]

    def some_key(self, name: str) -> str:
        """With "!" before it for a tombstone."""
        number = self.dice.randrange(100)
        if name == OWN:
            return f"{'two' if number < 50 else 'odd'}/{number % 10}"
        bang = "!" if self.dice.randrange(10) == 0 else ""
        if name == AGED:
            return f"{bang}k{number % 30}"
        if number < 60:
            return f"{bang}last/{number % 30}"
        if number < 75:
            return f"mine/{self.name}"
        if number < 80:
            return f"all/{self.name}"
        return f"none/{number % 3}" if number < 90 else f"for/{number % 5}"

    def append(self, name: str, count: int) -> None:
        durability: Any = self.dice.choice(DURABILITIES)
        partition = self.dice.randrange(TOPICS[name].get("partitions", 1))
        keys = [self.some_key(name) for _ in range(count)]
        self.sequence += 1
        start = time.monotonic_ns()
        self.journal("try", name, partition, self.sequence, start, ",".join(keys))
        records = [self.record(key, i, count) for i, key in enumerate(keys)]
        topic, to = self.topics[name], {"partition": partition, "durability": durability}
        answer = self.timed(durability, lambda: topic.append_batch(records, **to))
        if not answer:
            return
        offset = answer.offset
        self.journal("ack", name, partition, offset, count, durability, self.sequence)
        for at, key in enumerate(keys):
            if durability != "buffered" and key.startswith("all/"):
                self.stays.append((partition, offset + at))
            if durability != "buffered" and key.startswith("mine/"):
                self.newest[partition] = offset + at

    def record(self, key: str, index: int, count: int) -> tuple[Any, ...]:
        tag = f"{self.name}/{self.life}/{self.sequence}/{index}/{count}"
        if key.startswith("!"):
            return key[1:], None, {"tag": tag}
        return key, f"{tag} {key} " + "x" * self.dice.randrange(200)

    def look(self, call: str, reader: edgelog.Reader, most: float) -> set[tuple[int, int]] | None:
        """Where records are, up to the end; None if it did not come there."""
        last: dict[int, int] = {}
        seen: set[tuple[int, int]] = set()
        while len(seen) < most:
            timeout = self.dice.randrange(60) / 1000 if call == "wait" else 0
            records = self.timed(call, lambda: reader.read(64, timeout=timeout))  # noqa: B023
            if not records:
                return None if records is None else seen
            for record in records:
                self.look_at(call, record)
                if record.offset <= last.get(record.partition, -1):
                    self.journal("fault", f"{call}: offset {record.offset} comes again")
                last[record.partition] = record.offset
                seen.add((record.partition, record.offset))
        return None

    def look_at(self, call: str, record: edgelog.Record) -> None:
        """Whether it is what somebody appended."""
        key = record.key or b""
        if record.value is None:
            right = len(record.headers) == 1
        else:
            tag, named, rest = record.value.split(b" ")
            right = tag.count(b"/") == 4 and named == key and not rest.strip(b"x")
        if not right:
            self.journal("fault", f"{call}: {record.offset} of {key!r} is {record.value!r}")

    def read_some(self) -> None:
        name = self.dice.choice(list(TOPICS))
        reader = self.timed("reader", lambda: self.topics[name].reader("earliest"))
        if not reader:
            return
        wanted = set(self.stays) if name == RULES else set()
        seen = self.look("forward", reader, float("inf"))
        if seen is not None and not wanted <= seen:
            self.journal("fault", f"forward: {sorted(wanted - seen)} were passed over")
        reader.close()

    def read_newest(self) -> None:
        key = f"mine/{self.name}"
        known = self.newest.get(edgelog.partition_of(key, 2), -1)
        # A list, as no record is an answer, too.
        answer = self.timed("latest", lambda: [self.topics[RULES].latest(key)])
        if not answer:
            return
        found = answer[0]
        if found:
            self.look_at("latest", found)
        if known >= 0 and (not found or found.offset < known or found.key != key.encode()):
            self.journal("fault", f"latest: {found!r}, not {known}")

    def wait_some(self) -> None:
        if not self.follower:
            self.follower = self.timed("reader", lambda: self.topics[RULES].reader("latest"))
        if self.follower:
            self.look("wait", self.follower, 300)

    def compact(self) -> None:
        name = self.dice.choice([RULES, AGED])
        report = self.timed("compact", self.topics[name].compact)
        if report:
            self.journal("compacted", name, report.records_removed)

    def decide(self) -> None:
        """Its own loop: of some keys the last two stay, of others what has an even offset."""
        compaction = self.timed("begin", self.topics[OWN].compaction)
        if not compaction:
            return
        last: dict[bytes, deque[int]] = {}
        while records := self.timed("fold", lambda: compaction.read(64)):
            for record in records:
                self.look_at("fold", record)
                assert record.key
                if record.key.startswith(b"two/"):
                    last.setdefault(record.key, deque(maxlen=2)).append(record.offset)
                elif record.offset % 2:
                    compaction.drop(record.offset)
        for key, offsets in last.items():
            compaction.keep_from(key, offsets[0])
        report = self.timed("commit", compaction.commit)
        if report:
            self.journal("compacted", OWN, report.records_removed)
        compaction.abandon()

    def flush(self) -> None:
        topic = self.topics[self.dice.choice(list(TOPICS))]
        if self.done("flush", topic.flush):
            self.journal("flushed", topic.name)

    def act(self) -> None:
        number = self.dice.randrange(1000)
        if number < 700:
            count = 1 if number < 550 else self.dice.randrange(2, BATCH_MAX + 1)
            self.append(self.dice.choice(list(TOPICS)), count)
        elif number < 740:
            self.flush()
        elif number < 790:
            self.read_some()
        elif number < 840:
            self.read_newest()
        elif number < 900:
            self.wait_some()
        elif number < 940:
            self.compact()
        elif number < 980:
            self.decide()
        elif number < 990:
            assert self.log
            log = self.log
            self.done("maintain", lambda: log.maintain(0.02))
        else:
            self.close()
            self.open_again()
        if self.dice.randrange(3) == 0:
            time.sleep(self.dice.randrange(5) / 1000)

    def open_again(self) -> None:
        while not self.ends and not self.open():
            time.sleep(0.001)

    def run(self) -> None:
        self.stays, self.newest = deque(maxlen=64), {}
        self.open_again()
        while not self.ends:
            self.act()
        if self.log:
            self.close()
        self.journal("end")


Compactor().run()
