"""Nothing grows with time."""

import contextlib
import gc
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import edgelog
import pytest


def resident_bytes() -> int:
    fields = Path("/proc/self/statm").read_text().split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")


def append(topic: edgelog.Topic) -> None:
    for number in range(200):
        topic.append(b"x" * 100, key=number, headers={"a": b"b"}, durability="buffered")
        topic.append_batch([(b"key", b"x" * 100, {"a": b"b"})] * 5, durability="buffered")
    topic.flush()


def read(topic: edgelog.Topic) -> None:
    starts: list[Literal["earliest", "latest"]] = ["earliest", "latest"]
    for start in starts:
        with topic.reader(start=start) as reader:
            for record in reader:
                _ = (record.key, record.value, record.headers, record.timestamp, repr(record))
    topic.latest("none")


def fail(topic: edgelog.Topic) -> None:
    for _ in range(200):
        with pytest.raises(edgelog.InvalidError):
            topic.append(None)
        with pytest.raises(TypeError):
            topic.append_batch([b"x", 5.5])  # type: ignore[list-item]


def look(topic: edgelog.Topic) -> None:
    for _ in range(20):
        topic.stats()
        topic.partition_stats()
        topic.options  # noqa: B018
        topic.log.topics()
        topic.log.stats()
        topic.log.recovery()


def consume(topic: edgelog.Topic) -> None:
    topic.append_batch([(b"key", b"x" * 100, {"a": b"b"})] * 100)
    with topic.group("group") as group, group.consumer("a") as consumer:
        records = consumer.read(max=50)
        with consumer.handling(records[:20]):
            consumer.extend(records)
        consumer.nack(records, delay_ms=0, reason="why not")
        for _ in range(5):
            with contextlib.suppress(ValueError):
                for record in consumer.records(batch=3):
                    raise ValueError(record)
        for record in consumer.records(0):
            _ = (record.deliveries, group.pending(), group.consumers(), group.stats())
        _ = (group.options, consumer.last_delivery, consumer.total_delivery, repr(group))


@pytest.mark.parametrize("work", [append, read, fail, look, consume])
def test_no_growth(log: edgelog.Log, work: Callable[[edgelog.Topic], None]) -> None:
    topic = log.topic("topic", max_records=2000, segment_bytes=65536)
    topic.append_batch([(b"key", b"x" * 100, {"a": b"b"})] * 100)

    def measure() -> "tuple[int, int]":
        gc.collect()
        return sys.getallocatedblocks(), resident_bytes()

    for _ in range(10):
        work(topic)
    blocks, resident = measure()
    for _ in range(30):
        work(topic)
    blocks_after, resident_after = measure()
    assert blocks_after - blocks < 500
    assert resident_after - resident < 2 * 1024 * 1024


def growth_bytes(work: Callable[[], None]) -> int:
    """What many times more of some work leave behind."""
    for _ in range(100):
        work()
    gc.collect()
    before = resident_bytes(), len(os.listdir("/proc/self/fd"))
    for _ in range(300):
        work()
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before[1]
    return resident_bytes() - before[0]


def open_and_close(path: Path, maintenance: Literal["background", "manual"]) -> None:
    log = edgelog.open(path, maintenance=maintenance)
    with log, log.topic("topic") as topic, topic.reader() as reader:
        topic.append(b"x")
        next(reader)
        with topic.group("group") as group, group.consumer("a") as consumer:
            assert len(list(consumer.records(0))) == 1


def start_and_end_a_thread() -> None:
    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join()


def test_opening_and_closing_does_not_grow(path: Path) -> None:
    assert growth_bytes(lambda: open_and_close(path, "manual")) < 2 * 1024 * 1024


def test_opening_and_closing_a_log_with_a_thread_does_not_grow(path: Path) -> None:
    # An emulator keeps some memory of each thread that ended, whoever started it.
    of_threads = max(growth_bytes(start_and_end_a_thread), 0)
    growth = growth_bytes(lambda: open_and_close(path, "background"))
    print(f"{growth} bytes, of threads alone {of_threads}")
    assert growth - of_threads < 2 * 1024 * 1024
