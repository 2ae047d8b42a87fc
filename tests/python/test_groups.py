"""Consumer groups: who gets what, what becomes of it, and what is told about it."""

import datetime
import gc
import itertools
import os
import pickle
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import edgelog
import pytest
from test_fork import in_child
from test_types import samples

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")


@pytest.fixture
def group(topic: edgelog.Topic) -> edgelog.Group:
    """A group of a topic with the records 0 to 4."""
    topic.append_batch([b"%d" % number for number in range(5)])
    return topic.group("group")


@pytest.fixture
def consumer(group: edgelog.Group) -> edgelog.Consumer:
    """Its consumer "a"."""
    return group.consumer("a")


def offsets(records: "list[Any]") -> "list[int]":
    return [record.offset for record in records]


# Groups.


def test_a_group_is_made_once(topic: edgelog.Topic) -> None:
    group = topic.group("group")
    assert group.created
    assert (group.name, group.topic) == ("group", topic)
    assert not topic.group("group").created
    with pytest.raises(edgelog.ExistsError):
        topic.group("group", create="new")
    with pytest.raises(edgelog.NotFoundError):
        topic.group("other", create=False)
    topic.group("another")
    assert topic.groups() == ["another", "group"]
    topic.delete_group("another")
    assert topic.groups() == ["group"]
    with pytest.raises(edgelog.NotFoundError):
        topic.delete_group("another")


def test_names_may_be_anything(topic: edgelog.Topic) -> None:
    for name in ("../x", "a/b", ".", "0", "\u00e9", "x\0y"):
        assert topic.group(name).name == name
        assert topic.group(name).consumer(name).name == name
        assert [stats.name for stats in topic.group(name).consumers()] == [name]
    assert topic.groups() == sorted(["../x", "a/b", ".", "0", "\u00e9", "x\0y"])
    with pytest.raises(edgelog.InvalidError):
        topic.group("")


def test_where_a_group_begins(topic: edgelog.Topic) -> None:
    topic.append(b"0", timestamp=1000)
    topic.append(b"1", timestamp=2000)
    topic.append(b"2", timestamp=3000)
    begin = datetime.datetime.fromtimestamp(2, datetime.timezone.utc)
    starts: list[tuple[Any, int]] = [("earliest", 0), ("latest", 3), (1, 1), (begin, 1)]
    for number, (start, position) in enumerate(starts):
        group = topic.group(f"group {number}", start=start)
        assert group.position() == position
        group.seek("earliest")
        assert group.position() == 0
        group.seek(start, partition=0)
        assert group.position() == position
        assert group.stats().lag == 3 - position
    with pytest.raises(edgelog.InvalidError):
        group.seek("earliest", partition=1)
    with pytest.raises(edgelog.InvalidError):
        topic.group("other", start="middle")  # type: ignore[arg-type]
    assert topic.group("default").position() == 0


def test_options(topic: edgelog.Topic) -> None:
    assert topic.group("default").options.ack_timeout_ms == 30_000
    group = topic.group(
        "group",
        durability="synced",
        ack_timeout_ms=1000,
        backoff_ms=10,
        backoff_max_ms=100,
        max_deliveries=3,
        dead_letter="dead",
        consumer_ttl_ms=5000,
    )
    options = group.options
    assert options == topic.group("group").options
    assert hash(options) == hash(topic.group("group").options)
    assert repr(options) == (
        "GroupOptions(durability='synced', ack_timeout_ms=1000, backoff_ms=10, "
        "backoff_max_ms=100, max_deliveries=3, when_exhausted='give_up', dead_letter='dead', "
        "consumer_ttl_ms=5000, ordered=False, lease_ttl_ms=10000, processing_timeout_ms=60000)"
    )
    group.configure(ack_timeout_ms=edgelog.NEVER_MS, durability="written")
    assert group.options.ack_timeout_ms == edgelog.NEVER_MS
    assert group.options.durability == "written"
    assert group.options.dead_letter == "dead"
    group.configure(dead_letter="", max_deliveries=0)
    options = group.options
    assert (options.dead_letter, options.max_deliveries) == (None, 0)
    with pytest.raises(edgelog.InvalidError):
        group.configure(durability="buffered")  # type: ignore[arg-type]
    with pytest.raises(edgelog.InvalidError):
        group.configure(ack_timeout_ms=-1)
    with pytest.raises(TypeError):
        topic.group("other", unknown=1)  # type: ignore[call-arg]


def test_limits_hold_for_groups(log: edgelog.Log) -> None:
    topic = log.topic("held", max_records=10, hold_for_groups=True, when_full="reject")
    assert topic.options.hold_for_groups
    assert "hold_for_groups=True" in repr(topic.options)
    topic.configure(hold_for_groups=False)
    assert not topic.options.hold_for_groups
    topic.configure(max_records=20)
    assert not topic.options.hold_for_groups
    assert not log.topic("other").options.hold_for_groups


def test_what_is_held_is_not_removed(log: edgelog.Log) -> None:
    topic = log.topic("held", segment_bytes=4096, max_bytes=20_000, hold_for_groups=True)
    group = topic.group("group")
    consumer = group.consumer("a")

    def fill() -> int:
        for number in range(1000):
            try:
                topic.append(b"x" * 1000)
            except edgelog.FullError:
                return number
        raise AssertionError

    count = fill()
    assert count > 0
    assert group.stats().lag == count
    for _ in consumer.records(0):
        pass
    assert fill() > 0
    assert consumer.total_delivery.skipped == group.stats().expired == 0


# Reading and settling.


def test_each_record_goes_to_one_consumer(group: edgelog.Group) -> None:
    a, b = group.consumer("a"), group.consumer("b")
    assert a.group is group
    first = a.read(max=2)
    assert [record.value for record in first] == [b"0", b"1"]
    assert [record.deliveries for record in first] == [1, 1]
    assert offsets(b.read()) == [2, 3, 4]
    assert (a.read(), b.read()) == ([], [])
    assert a.ack(first) == ["done", "done"]
    stats = group.stats()
    assert (stats.consumers, stats.lag, stats.pending) == (2, 0, 3)
    assert (stats.delivered, stats.acknowledged) == (5, 2)


def test_a_record_knows_its_deliveries(topic: edgelog.Topic, consumer: edgelog.Consumer) -> None:
    plain = next(topic.reader())
    assert plain.deliveries == 0
    [record] = consumer.read(max=1)
    assert record.deliveries == 1
    assert record == plain
    assert hash(record) == hash(plain)
    assert "deliveries=1" in repr(record)
    assert "deliveries" not in repr(plain)
    assert pickle.loads(pickle.dumps(record)).deliveries == 1
    consumer.nack(record, delay_ms=0)
    assert consumer.read(max=1)[0].deliveries == 2


def test_what_ack_takes_and_answers(group: edgelog.Group, consumer: edgelog.Consumer) -> None:
    records = consumer.read(max=4)
    assert consumer.ack(records[0]) == "done"
    assert consumer.ack(records[0]) == "already"
    assert consumer.ack((0, 1)) == "done"
    assert consumer.ack(edgelog.Position(0, 4)) == "unknown"
    assert consumer.ack(edgelog.Position(7, 0)) == "unknown"
    assert group.consumer("b").ack(records[2]) == "not_owner"
    assert group.ack(group.pending()) == ["done", "done"]
    assert consumer.ack(record for record in records) == ["already"] * 4
    assert consumer.ack([]) == []
    assert consumer.ack((records[0], records[1])) == ["already", "already"]
    for wrong in (None, 1, "text", b"text", [1], [records], {"a": 1}, (0, "x"), (0, 1, 2)):
        with pytest.raises(TypeError):
            consumer.ack(wrong)  # type: ignore[arg-type]
    for number in ((0, -1), (2**32, 0), (0, 2**64)):
        with pytest.raises(edgelog.InvalidError):
            consumer.ack(number)
    with pytest.raises(edgelog.TooLargeError):
        consumer.ack([(0, 0)] * 65_537)


def test_ack_up_to(group: edgelog.Group, consumer: edgelog.Consumer) -> None:
    records = consumer.read(max=4)
    assert consumer.ack_up_to(records[2]) == 3
    assert consumer.ack_up_to((0, 2)) == 0
    assert offsets(group.pending()) == [3]
    with pytest.raises(edgelog.InvalidError):
        consumer.ack_up_to((1, 0))
    with pytest.raises(edgelog.InvalidError):
        consumer.ack_up_to(records)  # type: ignore[arg-type]


def test_nack(log: edgelog.Log, group: edgelog.Group, consumer: edgelog.Consumer) -> None:
    group.configure(max_deliveries=2, dead_letter="dead")
    [record] = consumer.read(max=1)
    assert group.consumer("b").nack(record) == "not_owner"
    assert consumer.nack(record, delay_ms=60_000) == "done"
    [pending] = group.pending()
    assert (pending.consumer, pending.deliveries) == (None, 1)
    assert pending.due_in_ms is not None
    assert 50_000 < pending.due_in_ms <= 60_000
    assert group.nack([pending], delay_ms=0, uncounted=True) == ["done"]
    assert group.pending()[0].deliveries == 0
    for deliveries in (1, 2):
        [record] = consumer.read(max=1)
        assert (record.offset, record.deliveries) == (0, deliveries)
        consumer.nack([record], delay_ms=0, reason="the uplink said no")
    [dead] = log.topic("dead", create=False).reader()
    assert dead.value == b"0"
    headers = dict(dead.headers)
    assert b"the uplink said no" in headers.values()
    assert b"group" in headers.values()
    assert group.stats().given_up == 1


def test_extend(group: edgelog.Group, consumer: edgelog.Consumer) -> None:
    group.configure(ack_timeout_ms=60_000)
    records = consumer.read(max=1)
    time.sleep(0.05)
    before = group.pending()[0].due_in_ms
    assert consumer.extend(records) == ["done"]
    after = group.pending()[0].due_in_ms
    assert before is not None
    assert after is not None
    assert after > before


def test_what_is_not_acknowledged_comes_again(topic: edgelog.Topic) -> None:
    topic.append(b"x")
    group = topic.group("group", ack_timeout_ms=100)
    a, b = group.consumer("a"), group.consumer("b")
    assert len(a.read()) == 1
    assert b.read() == []
    start = time.monotonic()
    [record] = b.read(timeout=30)
    assert time.monotonic() - start < 10
    assert record.deliveries == 2
    assert b.last_delivery.redelivered == 1
    assert a.ack(record) == "not_owner"


def test_what_is_taken(group: edgelog.Group, consumer: edgelog.Consumer) -> None:
    first = consumer.read(max=2)
    consumer.nack(first[0], delay_ms=0)
    assert offsets(consumer.read(max=1, take="new")) == [2]
    assert offsets(consumer.read(max=1, take="own")) == [1]
    assert offsets(consumer.read(max=5, take="own", timeout=None)) == [2]
    assert consumer.read(take="own", timeout=None) == []
    assert offsets(consumer.read(take="own")) == [1, 2]
    assert {pending.deliveries for pending in group.pending(consumer="a")} == {1}
    assert offsets(consumer.read(take="due")) == [0, 3, 4]
    with pytest.raises(edgelog.InvalidError):
        consumer.read(take="all")  # type: ignore[arg-type]
    with pytest.raises(edgelog.InvalidError):
        consumer.read(max=0)
    with pytest.raises(edgelog.InvalidError):
        consumer.read(take="own", at_most_once=True)


def test_at_most_once(group: edgelog.Group, consumer: edgelog.Consumer) -> None:
    records = consumer.read(at_most_once=True)
    assert len(records) == 5
    assert group.pending() == []
    assert consumer.ack(records[0]) == "already"


def test_bytes_at_most(topic: edgelog.Topic) -> None:
    topic.append_batch([b"x" * 100] * 10)
    consumer = topic.group("group").consumer("a")
    assert len(consumer.read(max_bytes=350)) == 3
    assert len(consumer.read(max_bytes=1)) == 1
    assert len(consumer.claim_idle(0, max_bytes=250)) == 2


def test_claims(group: edgelog.Group) -> None:
    a, b = group.consumer("a"), group.consumer("b")
    records = a.read()
    [claimed] = b.claim(records[0])
    assert (claimed.offset, claimed.deliveries) == (0, 2)
    assert offsets(b.claim([(0, 1), (0, 4)], uncounted=True)) == [1, 4]
    assert [pending.deliveries for pending in group.pending(last_offset=1)] == [2, 1]
    assert b.claim([]) == []
    assert b.claim((0, 99)) == []
    assert offsets(b.claim_from("a", max=1)) == [2]
    assert b.claim_from("nobody") == []
    assert offsets(b.claim_idle(0, min_deliveries=2, max=10)) == [0, 2]
    assert b.claim_idle(60_000) == []
    assert b.claim(records, min_idle_ms=60_000) == []
    assert offsets(a.claim_from("a")) == [3]
    with pytest.raises(edgelog.InvalidError):
        b.claim_idle(0, max=0)


def test_pending(group: edgelog.Group) -> None:
    a, b = group.consumer("a"), group.consumer("b")
    a.read(max=2)
    b.read(max=2)
    assert offsets(group.pending()) == [0, 1, 2, 3]
    assert offsets(group.pending(max=1)) == [0]
    assert offsets(group.pending(consumer="b")) == [2, 3]
    assert offsets(group.pending(first_offset=1, last_offset=2)) == [1, 2]
    assert group.pending(min_idle_ms=60_000) == []
    assert group.pending(min_deliveries=2) == []
    assert offsets(group.pending(partition=0)) == [0, 1, 2, 3]
    assert group.pending(consumer="nobody") == []
    pending = group.pending(consumer="a")[0]
    assert pending.position == (0, 0)
    assert (pending.partition, pending.consumer, pending.deliveries) == (0, "a", 1)
    assert pending.idle_ms <= 60_000
    assert repr(pending).startswith('PendingRecord(partition=0, offset=0, consumer="a"')
    with pytest.raises(AttributeError):
        pending.offset = 3  # type: ignore[misc]


def test_consumers(group: edgelog.Group, consumer: edgelog.Consumer) -> None:
    [stats] = group.consumers()
    assert (stats.name, stats.pending, stats.delivered_ago_ms) == ("a", 0, None)
    assert "delivered_ago_ms=None" in repr(stats)
    consumer.read(max=3)
    [stats] = group.consumers()
    assert (stats.pending, stats.deliveries, stats.redeliveries) == (3, 3, 0)
    assert stats.delivered_ago_ms is not None


def test_removing_a_consumer(group: edgelog.Group) -> None:
    a = group.consumer("a")
    with pytest.raises(edgelog.NotFoundError):
        group.remove_consumer("nobody")
    a.read(max=1)
    with pytest.raises(edgelog.BusyError):
        group.remove_consumer("a", removal="if_idle")
    assert group.remove_consumer("a") == 1
    [pending] = group.pending()
    assert pending.consumer is None
    assert offsets(a.read(max=2)) == [0, 1]
    assert group.remove_consumer("a", removal="acknowledge") == 2
    assert group.stats().pending == 0
    assert group.consumers() == []
    with pytest.raises(edgelog.InvalidError):
        group.remove_consumer("a", removal="drop")  # type: ignore[arg-type]


def test_what_was_lost_is_told_once(log: edgelog.Log) -> None:
    topic = log.topic("small", segment_bytes=4096, max_records=20)
    topic.append_batch([b"x" * 200] * 20)
    group = topic.group("group", max_deliveries=1)
    consumer = group.consumer("a")
    records = consumer.read(max=10)
    assert consumer.last_delivery.records == 10
    for _ in range(10):
        topic.append_batch([b"y" * 200] * 20)
    topic.retain()
    earliest = topic.partition_stats().earliest_offset
    assert earliest >= 20
    assert len(consumer.read(max=1)) == 1
    lost = consumer.last_delivery
    assert lost.skipped == earliest - 10
    assert consumer.ack(records[0]) == "already"
    consumer.read(max=1)
    assert consumer.last_delivery.skipped == 0
    total = consumer.total_delivery
    assert (total.records, total.skipped) == (12, lost.skipped)
    assert total.expired == group.stats().expired
    group.nack(group.pending(), delay_ms=0)
    consumer.read()
    stats = group.stats()
    assert stats.given_up == 2
    assert stats.expired + stats.acknowledged + stats.given_up + stats.pending == stats.delivered
    assert repr(total).startswith("Delivery(records=12, redelivered=0, expired=")


# Loops.


def test_a_loop_acknowledges(group: edgelog.Group, consumer: edgelog.Consumer) -> None:
    seen = []
    for record in consumer.records(timeout=0):
        assert offsets(group.pending()) == [record.offset]
        seen.append(record.value)
    assert seen == [b"0", b"1", b"2", b"3", b"4"]
    assert group.pending() == []
    assert group.stats().acknowledged == 5


def test_a_loop_that_an_exception_leaves_refuses(
    group: edgelog.Group, consumer: edgelog.Consumer, log: edgelog.Log
) -> None:
    group.configure(max_deliveries=2, dead_letter="dead")

    def work() -> None:
        for record in consumer:
            if record.offset == 1:
                raise ValueError("what a record")

    for _ in range(2):
        with pytest.raises(ValueError, match="what a record"):
            work()
    [dead] = log.topic("dead", create=False).reader()
    assert dead.value == b"1"
    assert b"ValueError: what a record" in dict(dead.headers).values()
    # In the same function, caught, with the iterator of the loop still there.
    try:
        for record in consumer:
            raise KeyError(record.offset)
    except KeyError:
        [pending] = group.pending()
        assert (pending.offset, pending.consumer, pending.deliveries) == (2, None, 1)


def test_an_exit_is_not_the_records_fault(group: edgelog.Group, consumer: edgelog.Consumer) -> None:
    def work() -> None:
        for _ in consumer:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()
    [pending] = group.pending()
    assert (pending.consumer, pending.deliveries, pending.due_in_ms) == (None, 0, 0)


def test_a_loop_that_is_left_keeps_the_record(
    group: edgelog.Group, consumer: edgelog.Consumer
) -> None:
    def first() -> edgelog.Record:
        for record in consumer:
            return record
        raise AssertionError

    record = first()
    assert [pending.consumer for pending in group.pending()] == ["a"]
    assert consumer.ack(record) == "done"
    for record in consumer:
        if record.offset == 3:
            break
    assert offsets(group.pending(consumer="a")) == [3]


def test_a_loop_fetches_ahead_and_gives_back(
    group: edgelog.Group, consumer: edgelog.Consumer
) -> None:
    for _ in consumer.records(batch=4):
        assert group.stats().pending == 4
        break
    states = [(pending.consumer, pending.deliveries) for pending in group.pending()]
    assert states == [("a", 1), (None, 0), (None, 0), (None, 0)]
    assert offsets(consumer.read()) == [1, 2, 3, 4]


def test_a_loop_with_explicit_acks(group: edgelog.Group, consumer: edgelog.Consumer) -> None:
    for record in consumer.records(0, ack="explicit"):
        if record.offset != 2:
            consumer.ack(record)
    assert offsets(group.pending()) == [2]
    assert offsets(list(consumer.records(take="own"))) == [2]
    assert group.pending() == []
    with pytest.raises(edgelog.InvalidError):
        consumer.records(ack="never")  # type: ignore[arg-type]
    with pytest.raises(edgelog.InvalidError):
        consumer.records(batch=0)


def test_a_late_loop_goes_on(topic: edgelog.Topic) -> None:
    topic.append_batch([b"0", b"1"])
    group = topic.group("group", ack_timeout_ms=500)
    late = group.consumer("late").records(timeout=0)
    next(late)
    time.sleep(0.6)
    assert offsets(group.consumer("other").read(max=1)) == [0]
    assert next(late).offset == 1
    assert offsets(group.pending(consumer="other")) == [0]


def test_handling(group: edgelog.Group, consumer: edgelog.Consumer, log: edgelog.Log) -> None:
    records = consumer.read()
    handling = consumer.handling(records[0])
    assert handling.outcome is None
    with handling as record:
        assert record is records[0]
    assert handling.outcome == "done"
    group.configure(max_deliveries=1, dead_letter="dead")
    several = consumer.handling(records[1:3])
    with pytest.raises(OSError, match="no uplink"), several:
        raise OSError("no uplink")
    assert several.outcome == ["done", "done"]
    assert [dead.value for dead in log.topic("dead").reader()] == [b"1", b"2"]
    with pytest.raises(SystemExit), consumer.handling(records[3]):
        sys.exit()
    assert group.pending(last_offset=3)[0].deliveries == 0
    # The exception of the block is the one that comes out.
    last = consumer.handling(records[4])
    consumer.close()
    with pytest.raises(ZeroDivisionError), last:
        _ = 1 / 0
    with pytest.raises(edgelog.ClosedError), consumer.handling(records[4]):
        pass


# Waiting.


def test_a_wait_ends_with_data(topic: edgelog.Topic, background: Any) -> None:
    consumer = topic.group("group").consumer("a")
    waiting = background(lambda: consumer.read(timeout=None))
    time.sleep(0.1)
    topic.append(b"x")
    assert [record.value for record in waiting.answer()] == [b"x"]


def test_a_wait_ends_with_its_deadline(consumer: edgelog.Consumer) -> None:
    consumer.read()
    start = time.monotonic()
    assert consumer.read(timeout=0.2) == []
    assert 0.19 <= time.monotonic() - start < 10


def test_a_refusal_wakes(group: edgelog.Group, background: Any) -> None:
    a, b = group.consumer("a"), group.consumer("b")
    records = a.read()
    waiting = background(lambda: b.read(timeout=None))
    time.sleep(0.1)
    a.nack(records[3], delay_ms=0)
    assert offsets(waiting.answer()) == [3]


def test_as_many_wake_as_there_are_records(topic: edgelog.Topic, background: Any) -> None:
    group = topic.group("group")
    consumers = [group.consumer(f"{number}") for number in range(6)]
    waits = [background(lambda c=consumer: c.read(1, timeout=1.0)) for consumer in consumers]
    time.sleep(0.2)
    topic.append_batch([b"0", b"1", b"2", b"3"])
    answers = [waiting.answer() for waiting in waits]
    assert sorted(offsets(list(itertools.chain.from_iterable(answers)))) == [0, 1, 2, 3]
    assert sorted(map(len, answers)) == [0, 0, 1, 1, 1, 1]


def test_wake(topic: edgelog.Topic, background: Any) -> None:
    consumer = topic.group("group").consumer("a")
    waiting = background(lambda: consumer.read(timeout=None))
    time.sleep(0.1)
    consumer.wake()
    assert waiting.answer() == []
    consumer.wake()
    assert list(consumer) == []
    topic.append(b"x")
    assert len(consumer.read(timeout=5)) == 1


def test_cancel(topic: edgelog.Topic, background: Any) -> None:
    topic.append(b"x")
    consumer = topic.group("group").consumer("a")
    [record] = consumer.read()
    waiting = background(lambda: consumer.read(timeout=None))
    time.sleep(0.1)
    consumer.cancel()
    with pytest.raises(edgelog.CancelledError):
        waiting.answer()
    with pytest.raises(edgelog.CancelledError):
        consumer.read()
    with pytest.raises(edgelog.CancelledError):
        consumer.claim_idle(0)
    assert consumer.ack(record) == "done"


@pytest.mark.parametrize("what", ["consumer", "log"])
def test_closing_ends_a_wait(
    what: str, log: edgelog.Log, topic: edgelog.Topic, background: Any
) -> None:
    consumer = topic.group("group").consumer("a")
    waiting = background(lambda: list(consumer))
    time.sleep(0.1)
    (consumer if what == "consumer" else log).close()
    with pytest.raises(edgelog.ClosedError):
        waiting.answer()


@pytest.mark.parametrize("what", ["group", "topic"])
def test_deleting_ends_a_wait(
    what: str, log: edgelog.Log, topic: edgelog.Topic, background: Any
) -> None:
    group = topic.group("group")
    consumer = group.consumer("a")
    waiting = background(lambda: consumer.read(timeout=None))
    time.sleep(0.1)
    if what == "group":
        topic.delete_group("group")
    else:
        log.delete_topic("topic")
    with pytest.raises(edgelog.DeletedError):
        waiting.answer()
    with pytest.raises(edgelog.DeletedError):
        group.stats()


def test_others_acknowledge_while_one_reads(group: edgelog.Group, background: Any) -> None:
    consumer = group.consumer("a")
    records = consumer.read()
    waiting = background(lambda: consumer.read(timeout=None))
    time.sleep(0.1)
    assert consumer.ack(records[0]) == "done"
    assert consumer.extend(records[1]) == "done"
    with pytest.raises(edgelog.MisuseError):
        consumer.read()
    with pytest.raises(edgelog.MisuseError):
        consumer.claim_idle(0)
    consumer.nack(records[2], delay_ms=0)
    assert offsets(waiting.answer()) == [2]


def test_other_threads_run_while_one_waits(consumer: edgelog.Consumer) -> None:
    consumer.read()
    turns = 0

    def turn() -> None:
        nonlocal turns
        while not done.is_set():
            turns += 1
            time.sleep(0.001)

    done = threading.Event()
    thread = threading.Thread(target=turn)
    thread.start()
    consumer.read(timeout=0.3)
    done.set()
    thread.join()
    assert turns > 20


def test_ctrl_c_ends_a_loop(consumer: edgelog.Consumer, group: edgelog.Group) -> None:
    threading.Timer(0.3, os.kill, [os.getpid(), signal.SIGINT]).start()
    with pytest.raises(KeyboardInterrupt):
        for _ in consumer:
            pass
    assert group.stats().acknowledged == 5


# Closing and forking.


@pytest.mark.parametrize(
    "order", list(itertools.permutations(["log", "topic", "group", "consumer"]))
)
def test_closing_in_any_order(path: Path, order: "tuple[str, ...]") -> None:
    log = edgelog.open(path)
    topic = log.topic("topic")
    topic.append(b"x")
    group = topic.group("group")
    consumer = group.consumer("a")
    consumer.read()
    things: dict[str, Any] = {"log": log, "topic": topic, "group": group, "consumer": consumer}
    for name in order:
        things[name].close()
        things[name].close()
        assert things[name].closed
    assert "closed" in repr(group)
    assert "closed" in repr(consumer)
    with edgelog.open(path) as log:
        group = log.topic("topic").group("group", create=False)
        assert group.stats().pending == 1
        assert offsets(group.consumer("a").read(take="own")) == [0]


def test_the_others_go_on_without_their_group(group: edgelog.Group) -> None:
    with group, group.consumer("a") as consumer:
        assert "open" in repr(group) + repr(consumer)
        group.close()
        assert len(consumer.read()) == 5
        with pytest.raises(edgelog.ClosedError):
            group.stats()
    with pytest.raises(edgelog.ClosedError):
        consumer.read()
    with pytest.raises(edgelog.ClosedError):
        consumer.ack((0, 0))


def test_garbage_keeps_the_log_open(path: Path) -> None:
    consumer = edgelog.open(path).topic("topic").group("group").consumer("a")
    gc.collect()
    consumer.group.topic.append(b"x")
    records = consumer.records()
    log = consumer.group.topic.log
    del consumer
    gc.collect()
    assert next(records).value == b"x"
    log.close()
    del records


def test_a_forked_child_harms_nothing(topic: edgelog.Topic) -> None:
    topic.append_batch([b"0", b"1", b"2"])
    group = topic.group("group")
    consumer = group.consumer("a")
    records = consumer.records(batch=2)
    record = next(records)

    def child() -> None:
        calls: list[Callable[[], object]] = [
            lambda: topic.group("group"),
            topic.groups,
            group.stats,
            group.pending,
            lambda: group.consumer("b"),
            lambda: group.ack(record),
            consumer.read,
            lambda: consumer.ack(record),
            lambda: consumer.nack(record),
            lambda: consumer.claim_idle(0),
            lambda: next(records),
            consumer.wake,
            consumer.cancel,
            consumer.close,
            group.close,
        ]
        for call in calls:
            with pytest.raises(edgelog.ForkedError):
                call()
        consumer.__exit__(None, None, None)
        group.__exit__(None, None, None)

    in_child(child)
    assert offsets(group.pending(consumer="a")) == [0, 1]
    assert next(records).offset == 1


def test_a_loop_in_a_forked_child(group: edgelog.Group, consumer: edgelog.Consumer) -> None:
    for record in consumer:
        if record.offset == 1:

            def child() -> None:
                raise ValueError

            with pytest.raises(AssertionError):
                in_child(child)
        elif record.offset == 2:
            break
    assert group.stats().acknowledged == 2
    assert [pending.consumer for pending in group.pending()] == ["a"]


# What groups are for.


def worker() -> str:
    """The worker in the README."""
    return next(sample for sample in samples() if "sys.argv" in sample)


def test_the_worker_is_short() -> None:
    assert len(worker().splitlines()) <= 20


def test_workers_that_are_killed_lose_nothing(tmp_path: Path) -> None:
    batches, names = 15, ["one", "two"]

    def start(name: str) -> "subprocess.Popen[bytes]":
        with open(tmp_path / f"{name}.done", "ab") as done:
            command = [sys.executable, "-c", worker(), name]
            return subprocess.Popen(command, stdout=done, cwd=tmp_path)

    with edgelog.open(tmp_path / "telemetry") as log:
        topic = log.topic("readings")
        workers = {name: start(name) for name in names}
        for _ in range(batches):
            topic.append_batch([b"reading"] * 200)
            name = random.choice(names)
            time.sleep(random.uniform(0.05, 0.4))
            workers[name].kill()
            workers[name].wait()
            workers[name] = start(name)
        total = topic.partition_stats().next_offset
        assert [worker.wait(60) for worker in workers.values()] == [0, 0]
        stats = topic.group("uplink", create=False).stats()
        assert (stats.lag, stats.pending, stats.given_up) == (0, 0, 0)
        assert (stats.delivered, stats.acknowledged) == (total, total)
    files = [tmp_path / f"{name}.done" for name in names]
    done = [int(line) for file in files for line in file.read_text().split()]
    assert set(done) == set(range(total))
    # What was under way when a worker was killed was done again, and nothing else.
    assert len(done) - total <= batches
