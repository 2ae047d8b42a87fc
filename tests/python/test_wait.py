"""Waiting for records: deadlines, wake, cancel, Ctrl-C, and other threads meanwhile."""

import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import edgelog
import pytest


def test_a_wait_ends_with_its_deadline(topic: edgelog.Topic) -> None:
    reader = topic.reader()
    start = time.monotonic()
    assert reader.read(timeout=0.2) == []
    assert 0.19 <= time.monotonic() - start < 10


def test_a_wait_ends_with_data(topic: edgelog.Topic, background: Any) -> None:
    reader = topic.reader()
    waiting = background(lambda: reader.read(timeout=None))
    time.sleep(0.1)
    topic.append(b"x")
    assert [record.value for record in waiting.answer()] == [b"x"]


def test_a_wait_in_the_main_thread_ends_with_data(topic: edgelog.Topic) -> None:
    reader = topic.reader()
    threading.Timer(0.3, topic.append, [b"x"]).start()
    assert [record.value for record in reader.read(timeout=30)] == [b"x"]


def test_follow(topic: edgelog.Topic, background: Any) -> None:
    topic.append(b"0")
    reader = topic.reader()
    values = []

    def follow() -> None:
        for record in reader.follow():
            values.append(record.value)
            if record.value == b"3":
                return

    following = background(follow)
    for number in range(1, 4):
        time.sleep(0.02)
        topic.append(b"%d" % number)
    following.answer()
    assert values == [b"0", b"1", b"2", b"3"]


def test_follow_ends_when_nothing_comes(topic: edgelog.Topic) -> None:
    topic.append(b"x")
    assert len(list(topic.reader().follow(timeout=0.05))) == 1


def test_wake(topic: edgelog.Topic, background: Any) -> None:
    reader = topic.reader()
    waiting = background(lambda: reader.read(timeout=None))
    time.sleep(0.1)
    reader.wake()
    assert waiting.answer() == []
    # The reader goes on.
    topic.append(b"x")
    assert len(reader.read(timeout=5)) == 1


def test_a_wake_is_not_lost(topic: edgelog.Topic) -> None:
    reader = topic.reader()
    reader.wake()
    assert reader.read(timeout=None) == []


def test_wake_ends_follow(topic: edgelog.Topic, background: Any) -> None:
    reader = topic.reader()
    following = background(lambda: list(reader.follow()))
    time.sleep(0.1)
    reader.wake()
    assert following.answer() == []


def test_cancel(topic: edgelog.Topic, background: Any) -> None:
    reader = topic.reader()
    waiting = background(lambda: reader.read(timeout=None))
    time.sleep(0.1)
    reader.cancel()
    with pytest.raises(edgelog.CancelledError):
        waiting.answer()
    with pytest.raises(edgelog.CancelledError):
        reader.read()
    with pytest.raises(edgelog.CancelledError):
        next(reader)


def test_cancel_holds_for_records_fetched_in_advance(topic: edgelog.Topic) -> None:
    topic.append_batch([b"1", b"2", b"3"])
    reader = topic.reader()
    next(reader)
    reader.cancel()
    with pytest.raises(edgelog.CancelledError):
        next(reader)
    with pytest.raises(edgelog.CancelledError):
        reader.read()


@pytest.mark.parametrize("what", ["reader", "log"])
def test_closing_ends_a_wait(
    what: str, log: edgelog.Log, topic: edgelog.Topic, background: Any
) -> None:
    reader = topic.reader()
    waiting = background(lambda: reader.read(timeout=None))
    time.sleep(0.1)
    (reader if what == "reader" else log).close()
    with pytest.raises(edgelog.ClosedError):
        waiting.answer()


def test_deleting_the_topic_ends_a_wait(
    log: edgelog.Log, topic: edgelog.Topic, background: Any
) -> None:
    reader = topic.reader()
    waiting = background(lambda: reader.read(timeout=None))
    time.sleep(0.1)
    log.delete_topic("topic")
    with pytest.raises(edgelog.DeletedError):
        waiting.answer()


def test_one_thread_at_a_time(topic: edgelog.Topic, background: Any) -> None:
    reader = topic.reader()
    waiting = background(lambda: reader.read(timeout=None))
    time.sleep(0.1)
    with pytest.raises(edgelog.MisuseError):
        reader.read()
    with pytest.raises(edgelog.MisuseError):
        reader.seek("earliest")
    reader.wake()
    waiting.answer()
    assert reader.read() == []


def test_another_thread_runs_while_one_waits(topic: edgelog.Topic, background: Any) -> None:
    reader = topic.reader()
    waiting = background(lambda: reader.read(timeout=1.0))
    # If the interpreter were held, this loop could not turn before the wait is over.
    turns = 0
    start = time.monotonic()
    while waiting.is_alive() and time.monotonic() - start < 0.5:
        turns += 1
    assert turns > 1000
    assert time.monotonic() - start >= 0.5
    reader.wake()
    waiting.answer()


@pytest.mark.parametrize(
    "call",
    [
        lambda topic: topic.append(b"x", durability="synced"),
        lambda topic: topic.append_batch([b"x"] * 10, durability="synced"),
        lambda topic: topic.sync(),
        lambda topic: topic.log.verify(),
        lambda topic: list(topic.reader()),
    ],
    ids=["append", "batch", "sync", "verify", "read"],
)
def test_many_threads_share_a_topic(
    topic: edgelog.Topic, background: Any, call: Callable[[edgelog.Topic], Any]
) -> None:
    topic.append(b"x")
    threads = [background(lambda: [call(topic) for _ in range(20)]) for _ in range(4)]
    for thread in threads:
        thread.answer()
    assert [record.offset for record in topic.reader()] == list(range(topic.stats().records))


@pytest.mark.parametrize("way", ["read", "follow"])
def test_ctrl_c_ends_a_wait(topic: edgelog.Topic, way: str) -> None:
    reader = topic.reader()
    wait = (lambda: reader.read(timeout=None)) if way == "read" else reader.follow().__next__
    start = time.monotonic()
    threading.Timer(0.3, os.kill, [os.getpid(), signal.SIGINT]).start()
    with pytest.raises(KeyboardInterrupt):
        wait()
    assert time.monotonic() - start < 5
    # Nothing is lost, and the reader goes on.
    topic.append(b"x")
    assert len(reader.read(timeout=5)) == 1


def test_a_signal_handler_may_close_the_reader(topic: edgelog.Topic) -> None:
    reader = topic.reader()
    before = signal.signal(signal.SIGALRM, lambda *_: reader.close())
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(edgelog.ClosedError):
            reader.read(timeout=None)
    finally:
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("timeout", [-1, -0.001, float("nan")])
def test_wrong_timeouts(topic: edgelog.Topic, timeout: float) -> None:
    with pytest.raises(edgelog.InvalidError, match="a time to wait"):
        topic.reader().read(timeout=timeout)
    with pytest.raises(edgelog.InvalidError, match="a time to wait"):
        topic.reader().follow(timeout=timeout)


@pytest.mark.parametrize("timeout", [1e6, 1e300, float("inf")])
def test_long_timeouts(topic: edgelog.Topic, background: Any, timeout: float) -> None:
    reader = topic.reader()
    waiting = background(lambda: reader.read(timeout=timeout))
    time.sleep(0.1)
    assert waiting.is_alive()
    topic.append(b"x")
    assert len(waiting.answer()) == 1
