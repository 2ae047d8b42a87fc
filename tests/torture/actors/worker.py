"""Appends, reads, waits, makes and deletes topics, retains, verifies, closes and opens again."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import edgelog

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from actor import TopicsActor

TOPICS: dict[str, dict[str, Any]] = {
    "main": {"segment_bytes": 262144},
    "parts": {"partitions": 3, "segment_bytes": 65536},
    "ring": {"segment_bytes": 16384, "max_bytes": 262144},
}
DURABILITIES = ["buffered"] * 8 + ["written"] * 10 + ["synced"] * 2


class Worker(TopicsActor):
    kinds = TOPICS
    in_background = 7
    sequence = 0

    def append(self, topic: edgelog.Topic, partitions: int, count: int, *fine: str) -> None:
        durability: Any = self.dice.choice(DURABILITIES)
        self.sequence += 1
        tag = f"{self.name}/{self.life}/{self.sequence}"
        values = [f"{tag}/{i}/{count} " + "x" * self.dice.randrange(200) for i in range(count)]
        to = {"partition": self.dice.randrange(partitions), "durability": durability}
        if count == 1:
            answer = self.timed(
                durability, lambda: topic.append(values[0], key=self.name, **to), *fine
            )
        else:
            records = [(self.name, value) for value in values]
            answer = self.timed(durability, lambda: topic.append_batch(records, **to), *fine)
        if answer:
            partition, offset = answer
            self.journal("ack", topic.name, partition, offset, count, durability, self.sequence)

    def look(self, call: str, most: int, step: int, reader: edgelog.Reader) -> None:
        """Looks at the order of offsets; step is 1, -1, or 0 for rising ones."""
        last = None
        while most > 0:
            timeout = self.dice.randrange(60) / 1000 if call == "wait" else 0
            records = self.timed(call, lambda: reader.read(64, timeout=timeout))  # noqa: B023
            if not records:
                break
            for record in records:
                right = last is None or (
                    record.offset == last + step if step else record.offset > last
                )
                if not right:
                    self.journal("fault", f"{call}: offset {record.offset} behind {last}")
                last = record.offset
            most -= len(records)

    def read_some(self, backward: bool) -> None:
        name = self.dice.choice(["main", "ring"])
        start: Any = "latest" if backward else "earliest"
        reader = self.timed("reader", lambda: self.topics[name].reader(start, reverse=backward))
        if reader:
            # What retention removes while it is read makes holes in the ring.
            step = -1 if backward else int(name == "main")
            self.look("backward" if backward else "forward", 200, step, reader)
            reader.close()

    def read_key(self) -> None:
        reader = self.timed("reader", lambda: self.topics["ring"].reader(key=self.name))
        if reader:
            self.look("by-key", 100, 0, reader)
            reader.close()

    def wait_some(self) -> None:
        if not self.follower:
            self.follower = self.timed("reader", lambda: self.topics["main"].reader("latest"))
        if self.follower:
            self.look("wait", 300, 1, self.follower)

    def make_and_delete(self) -> None:
        assert self.log
        log, name = self.log, f"short-{self.dice.randrange(3)}"
        if self.dice.randrange(3) == 0:
            self.done("delete", lambda: log.delete_topic(name), "NOT_FOUND")
            return
        topic = self.timed("create", lambda: log.topic(name), "DELETED", "NOT_FOUND")
        if topic:
            self.append(topic, 1, 1 + self.dice.randrange(3), "DELETED")
            self.done("topic-close", topic.close, "DELETED")

    def configure(self) -> None:
        ring, most = self.topics["ring"], self.dice.choice([500, 0])
        self.done("configure", lambda: ring.configure(max_records=most))
        self.done("retain", ring.retain)

    def verify(self) -> None:
        assert self.log
        for damage in self.timed("verify", self.log.verify, "DELETED") or ():
            self.journal("fault", f"verify: {damage}")

    def stats(self) -> None:
        topic = self.topics[self.dice.choice(list(TOPICS))]
        stats = self.timed("stats", topic.partition_stats)
        if stats and not stats.earliest_offset <= stats.written_offset <= stats.next_offset:
            self.journal("fault", f"stats: {stats}")

    def flush(self) -> None:
        topic = self.topics[self.dice.choice(list(TOPICS))]
        if self.done("flush", topic.flush):
            self.journal("flushed", topic.name)

    def act(self) -> None:
        number = self.dice.randrange(1000)
        if number < 650:
            name = self.dice.choice(list(TOPICS))
            count = 1 if number < 500 else self.dice.randrange(2, 17)
            self.append(self.topics[name], TOPICS[name].get("partitions", 1), count)
        elif number < 700:
            self.flush()
        elif number < 800:
            self.read_some(backward=number < 750)
        elif number < 830:
            self.read_key()
        elif number < 880:
            self.wait_some()
        elif number < 940:
            self.make_and_delete()
        elif number < 955:
            self.configure()
        elif number < 957:
            self.verify()
        elif number < 990:
            self.stats()
        else:
            self.close()
            self.open_again()
        if self.dice.randrange(3) == 0:
            time.sleep(self.dice.randrange(5) / 1000)

    def open_again(self) -> None:
        while not self.ends and not self.open():
            time.sleep(0.001)

    def run(self) -> None:
        self.open_again()
        while not self.ends:
            self.act()
        if self.log:
            self.close()
        self.journal("end")


Worker().run()
