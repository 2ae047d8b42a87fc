"""A process of the tests, in Python: does what standard input says, a command a line, and answers
each with a line, "ok ..." or "error STATUS PROCESS text". All three peers know the same commands:

    open PATH MODE BUSY_MS              close
    create TOPIC SEGMENT_BYTES          delete TOPIC           topics -> names
    append TOPIC DURABILITY COUNT VALUE -> offset of the first, nanoseconds before the call
    flush TOPIC                         read TOPIC -> offset:value ...
    follow TOPIC                        wait MS -> value, nanoseconds after the call
    configure TOPIC MAX_RECORDS         retain TOPIC
    stats TOPIC -> earliest next records segments              verify -> damages

Nanoseconds are those of the clock that all processes share.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import edgelog


class Peer:
    log: edgelog.Log
    follower: edgelog.Reader

    def topic(self, name: str) -> edgelog.Topic:
        # Open until the next one is needed: closing hands out what is buffered.
        self.kept = self.log.topic(name, create=False)
        return self.kept

    def open(self, path: str, mode: Any, busy_ms: str) -> None:
        self.log = edgelog.open(path, mode=mode, busy_timeout=int(busy_ms) / 1000)

    def close(self) -> None:
        self.log.close()

    def create(self, name: str, segment_bytes: str) -> None:
        self.log.topic(name, create="new", segment_bytes=int(segment_bytes))

    def delete(self, name: str) -> None:
        self.log.delete_topic(name)

    def topics(self) -> list[Any]:
        return list(self.log.topics())

    def append(self, name: str, durability: Any, count: str, value: str) -> list[Any]:
        topic = self.topic(name)
        start = time.monotonic_ns()
        if count == "1":
            first = topic.append(value, durability=durability)
        else:
            first = topic.append_batch([value] * int(count), durability=durability)
        return [first.offset, start]

    def flush(self, name: str) -> None:
        self.topic(name).flush()

    def read(self, name: str) -> list[Any]:
        records = self.topic(name).reader()
        return [f"{record.offset}:{(record.value or b'').decode()}" for record in records]

    def follow(self, name: str) -> None:
        self.follower = self.topic(name).reader("latest")

    def wait(self, ms: str) -> list[Any]:
        records = self.follower.read(1, timeout=int(ms) / 1000)
        end = time.monotonic_ns()
        return [(records[0].value or b"").decode(), end] if records else ["timeout", 0]

    def configure(self, name: str, max_records: str) -> None:
        self.topic(name).configure(max_records=int(max_records))

    def retain(self, name: str) -> None:
        self.topic(name).retain()

    def stats(self, name: str) -> list[Any]:
        stats = self.topic(name).partition_stats()
        return [stats.earliest_offset, stats.next_offset, stats.records, stats.segments]

    def verify(self) -> list[Any]:
        return [len(self.log.verify())]


def main() -> None:
    peer = Peer()
    for line in sys.stdin:
        command, *words = line.split()
        try:
            answer = getattr(peer, command)(*words)
            print("ok", *(answer or []), flush=True)
        except edgelog.Error as e:
            print("error", e.code, e.process_id or 0, e, flush=True)


main()
