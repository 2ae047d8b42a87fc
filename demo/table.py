#!/usr/bin/env python3
"""Follow a log of the demo beside the program that writes it, and show a live table.

usage: table.py DIRECTORY [TOPIC]

Waits until the topic is there, and reads to the record that says that it is the last. How far it
is, it notes in the topic "progress" of the same log: killed and started again, it goes on from
there. demo/sample.h says what the records are.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass, field

import edgelog

KINDS = {1: "load", 2: "memory", 3: "network", 4: "process", 5: "temperature"}
KIND_END = 255
ROWS_MAX = 8
PATIENCE_SECONDS = 30.0
TABLE_SECONDS = 1.0


@dataclass
class Series:
    """What was read of one key."""

    records: int = 0
    changes: int = 0
    shown: int = 0
    value: str = ""
    time_ms: int = 0


@dataclass
class Table:
    """Counts and last values of every key, and when they were last shown."""

    series: dict[tuple[int, int], Series] = field(default_factory=dict)
    records: int = 0
    shown_at: float = field(default_factory=time.monotonic)

    def add(self, record: edgelog.Record) -> int:
        """Take a record in, and return its kind."""
        if record.key is None or record.value is None:
            raise SystemExit(f"table.py: offset {record.offset} is no sample")
        kind, entity = record.key[0], int.from_bytes(record.key[1:], "big")
        one = self.series.setdefault((kind, entity), Series())
        one.records += 1
        value = record.value.decode()
        one.changes += value != one.value
        one.value = value
        one.time_ms = record.timestamp_ms
        self.records += 1
        return kind

    def show(self) -> None:
        """Print the liveliest keys, and how many records a second each of them got."""
        now = time.monotonic()
        seconds = max(now - self.shown_at, 0.001)
        self.shown_at = now
        keys = [key for key in self.series if key[0] != KIND_END]
        keys.sort(key=lambda key: (-self.series[key].changes, key))
        if sys.stdout.isatty():
            print("\x1b[H\x1b[J", end="")
        print(f"{'key':<20} {'records':>8} {'a second':>9}  {'time':<19}  last value")
        for key in keys[:ROWS_MAX]:
            one = self.series[key]
            rate = (one.records - one.shown) / seconds
            at = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(one.time_ms / 1000))
            name = f"{KINDS.get(key[0], key[0])} {key[1]}"
            print(f"{name:<20} {one.records:>8} {rate:>9.1f}  {at}  {one.value}")
        if len(keys) > ROWS_MAX:
            print(f"and {len(keys) - ROWS_MAX} more keys; {self.records} records in all")
        for one in self.series.values():
            one.shown = one.records


class Progress:
    """How far this program is; each of those that read has a key of its own."""

    def __init__(self, log: edgelog.Log, name: str) -> None:
        self.key = f"table.py {name}"
        self.topic = log.topic("progress")

    def load(self) -> tuple[int, int]:
        """The offset to go on with, and how many records came before."""
        record = self.topic.latest(self.key)
        if record is None or record.value is None:
            return 0, 0
        noted = json.loads(record.value)
        print(f"table.py: {noted['records']} records were read before")
        return noted["next"], noted["records"]

    def note(self, following: int, records: int) -> None:
        """Where to go on."""
        self.topic.append(json.dumps({"next": following, "records": records}), key=self.key)


def topic_when_there(log: edgelog.Log, name: str) -> edgelog.Topic:
    """The writer may not have made it yet."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return log.topic(name, create=False)
        except edgelog.NotFoundError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def follow(topic: edgelog.Topic, table: Table, progress: Progress) -> str:
    """Read to the writer's last record, and return what it says."""
    silent_since = time.monotonic()
    start, table.records = progress.load()
    with topic.reader(start) as reader:
        while True:
            records = reader.read(max=256, timeout=0.2)
            for record in records:
                if table.add(record) == KIND_END:
                    return table.series[(KIND_END, 0)].value
            now = time.monotonic()
            if records:
                progress.note(records[-1].offset + 1, table.records)
                silent_since = now
            elif now - silent_since > PATIENCE_SECONDS:
                raise SystemExit("table.py: no record came, and none said that it was the last")
            if now - table.shown_at >= TABLE_SECONDS:
                table.show()


def main() -> None:
    """Follow, and compare the count with the writer's."""
    if not 2 <= len(sys.argv) <= 3:
        raise SystemExit(__doc__)
    name = sys.argv[2] if len(sys.argv) == 3 else "telemetry"
    table = Table()
    with edgelog.open(sys.argv[1]) as log:
        said = int(follow(topic_when_there(log, name), table, Progress(log, name)))
    table.show()
    print(f"table.py: read {table.records} records of {len(table.series)} keys")
    # The writer counts what came before its last record.
    if said != table.records - 1:
        raise SystemExit(f"table.py: {said} records were written before the last")


if __name__ == "__main__":
    main()
