"""Closing: in any order, twice, never, and at the end of the interpreter."""

import gc
import itertools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import edgelog
import pytest


@pytest.mark.parametrize("order", list(itertools.permutations(["log", "topic", "reader"])))
def test_any_order(path: Path, order: "tuple[str, ...]") -> None:
    log = edgelog.open(path)
    topic = log.topic("topic")
    topic.append(b"x")
    reader = topic.reader()
    next(reader)
    topic.append(b"y", durability="buffered")
    things: dict[str, Any] = {"log": log, "topic": topic, "reader": reader}
    for name in order:
        things[name].close()
        things[name].close()
        assert things[name].closed
    with edgelog.open(path) as log:
        assert log.topic("topic").stats().records == 2


@pytest.mark.parametrize("order", list(itertools.permutations(["log", "topic", "reader"])))
def test_garbage_in_any_order(path: Path, order: "tuple[str, ...]") -> None:
    log = edgelog.open(path)
    things: dict[str, Any] = {"log": log, "topic": log.topic("topic")}
    things["reader"] = things["topic"].reader()
    things["topic"].append(b"x", durability="buffered")
    del log

    def drop() -> None:
        for name in order:
            del things[name]
            gc.collect()

    with pytest.warns(ResourceWarning, match="unclosed log"):
        drop()
    with edgelog.open(path) as log:
        assert log.topic("topic").stats().records == 1


def test_a_topic_keeps_its_log_open(path: Path) -> None:
    topic = edgelog.open(path).topic("topic")
    gc.collect()
    topic.append(b"x")
    reader = topic.reader()
    log = topic.log
    del topic
    gc.collect()
    assert next(reader).value == b"x"
    assert reader.topic.log is log
    log.close()


def test_closed_things_say_so(path: Path) -> None:
    log = edgelog.open(path)
    topic = log.topic("topic")
    reader = topic.reader()
    control = topic.reader()
    assert "open" in repr(log) + repr(topic) + repr(reader)
    log.close()
    calls: list[Callable[[], object]] = [
        lambda: log.topic("topic"),
        log.topics,
        lambda: log.delete_topic("topic"),
        log.flush,
        log.sync,
        log.maintain,
        log.stats,
        log.recovery,
        log.verify,
        lambda: topic.append(b"x"),
        lambda: topic.append_batch([b"x"]),
        lambda: topic.delete("key"),
        topic.flush,
        topic.sync,
        topic.retain,
        lambda: topic.configure(linger_ms=5),
        lambda: topic.options,
        topic.stats,
        topic.partition_stats,
        topic.reader,
        lambda: topic.latest("key"),
        reader.read,
        lambda: next(reader),
        lambda: next(reader.follow()),
        lambda: reader.seek("earliest"),
    ]
    for call in calls:
        with pytest.raises(edgelog.ClosedError):
            call()
    reader.close()
    for call in (reader.read, reader.position, reader.gaps, reader.wake, reader.cancel):
        with pytest.raises(edgelog.ClosedError):
            call()
    assert "closed" in repr(log)
    assert "closed" in repr(reader)
    control.close()


def test_a_closed_topic_leaves_the_log_open(log: edgelog.Log) -> None:
    topic = log.topic("topic")
    topic.close()
    with pytest.raises(edgelog.ClosedError):
        topic.append(b"x")
    assert log.topic("topic").append(b"x") == (0, 0)


def test_with(path: Path) -> None:
    with edgelog.open(path) as log, log.topic("topic") as topic, topic.reader() as reader:
        topic.append(b"x")
        assert next(reader).value == b"x"
    assert log.closed
    assert topic.closed
    assert reader.closed
    with pytest.raises(ZeroDivisionError), edgelog.open(path) as log:
        raise ZeroDivisionError
    assert log.closed


def test_close_while_others_append(path: Path, background: Any) -> None:
    log = edgelog.open(path)
    topic = log.topic("topic")
    counts = []

    def append() -> None:
        count = 0
        try:
            while True:
                topic.append(b"x", durability="buffered")
                count += 1
        except edgelog.ClosedError:
            counts.append(count)

    threads = [background(append) for _ in range(3)]
    while topic.stats().appended_records < 1000:
        pass
    log.close()
    for thread in threads:
        thread.answer()
    with edgelog.open(path) as log:
        assert log.topic("topic").stats().records == sum(counts)


def test_a_log_left_open_is_flushed_at_exit(script: Any, path: Path) -> None:
    done = script(
        """
        import sys, edgelog
        log = edgelog.open(sys.argv[1])
        topic = log.topic("topic", linger_ms=600_000)
        topic.append(b"x", durability="buffered")
        # Garbage that is never collected: only the end of the interpreter is left to close it.
        kept = [log]
        kept.append(kept)
        del log
        """,
        path,
    )
    assert (done.returncode, done.stderr) == (0, "")
    with edgelog.open(path) as log:
        assert log.topic("topic").stats().records == 1


def test_exit_while_daemon_threads_are_busy(script: Any, path: Path) -> None:
    done = script(
        """
        import sys, threading, time, edgelog
        log = edgelog.open(sys.argv[1])
        topic = log.topic("topic")
        reader = topic.reader(start="latest")

        def append():
            while True:
                topic.append(b"x", durability="buffered")

        threading.Thread(target=append, daemon=True).start()
        threading.Thread(target=lambda: list(reader.follow()), daemon=True).start()
        other = topic.reader(key="no")
        threading.Thread(target=lambda: other.read(timeout=None), daemon=True).start()
        time.sleep(0.3)
        """,
        path,
    )
    assert done.returncode == 0, done.stderr
    with edgelog.open(path) as log:
        assert not log.verify()


def test_exceptions_in_the_warning_are_no_crash(script: Any, path: Path) -> None:
    done = script(
        """
        import sys, edgelog
        log = edgelog.open(sys.argv[1])
        del log
        print("alive")
        """,
        path,
        flags=["-W", "error"],
    )
    assert done.stdout == "alive\n"
    assert "ResourceWarning: unclosed log" in done.stderr


NOTHING_IS_CLOSED = """
import sys, edgelog
path = sys.argv[1]

def records():
    consumer = edgelog.open(path).topic("topic").group("group").consumer("a")
    for record in consumer.records(timeout=0):
        raise ZeroDivisionError(record.offset)

def compaction():
    with edgelog.open(path).topic("topic").compaction() as run:
        raise ZeroDivisionError(run)

def raised(call):
    try:
        call()
    except Exception as error:
        return type(error).__name__

with edgelog.open(path) as log:
    log.topic("topic").append(b"x")
for call in (
    lambda: edgelog.open(path).topic(""),
    lambda: edgelog.open(path).topic("topic", when_full="never"),
    lambda: edgelog.open(path).topic("topic").append(None),
    lambda: edgelog.open(path).topic("topic").append(1.5),
    lambda: edgelog.open(path).topic("topic").append_batch([None]),
    lambda: next(edgelog.open(path).topic("topic").reader(start="latest")),
    lambda: next(edgelog.open(path).topic("topic").reader(start="latest").follow(timeout=0)),
    lambda: edgelog.open(path).topic("topic").reader(start=1.5),
    lambda: edgelog.open(path).topic("topic").group(""),
    lambda: edgelog.open(path).topic("topic").group("group").consumer(""),
    lambda: edgelog.open(path).topic("topic").group("group").consumer("a").ack(None),
    lambda: next(edgelog.open(path).topic("empty").group("g").consumer("a").records(timeout=0)),
    lambda: edgelog.open(path).nothing,
    records,
    compaction,
):
    print(raised(call))
"""


@pytest.mark.parametrize("warnings", ["ignore", "always", "error"])
def test_an_exception_outlives_the_handles_that_it_ends(
    script: Any, path: Path, warnings: str
) -> None:
    done = script(NOTHING_IS_CLOSED, path, flags=["-W", warnings])
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [
        "InvalidError",
        "InvalidError",
        "InvalidError",
        "TypeError",
        "TypeError",
        "StopIteration",
        "StopIteration",
        "TypeError",
        "InvalidError",
        "InvalidError",
        "TypeError",
        "StopIteration",
        "AttributeError",
        "ZeroDivisionError",
        "ZeroDivisionError",
    ]
    assert "SystemError" not in done.stderr
    count = 0 if warnings == "ignore" else 15
    assert len(re.findall("(?m)^.*ResourceWarning: unclosed log", done.stderr)) == count


def test_subinterpreters_are_refused(script: Any) -> None:
    done = script(
        """
        import sys
        try:
            import _interpreters as interpreters
        except ImportError:
            import _xxsubinterpreters as interpreters
        import edgelog
        other = interpreters.create()
        try:
            answer = interpreters.run_string(other, "import edgelog")
        except Exception as error:
            answer = error
        print(repr(answer))
        interpreters.destroy(other)
        """
    )
    assert done.returncode == 0, done.stderr
    assert "ImportError" in done.stdout
