"""Ordered groups: who has which partition, and that the records of a key stay in order."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
import os
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
from edgelog import aio
from test_fork import in_child
from test_types import DOCS, samples

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")

#: The places of what the topic begins with.
ALL = list(itertools.product(range(2), range(5)))
#: Long enough that no lease ends by itself in a test that does not want it.
LONG_MS = 60_000
#: After which a partition is lost that nothing is settled of, in a test that waits for that.
STALL_MS = 1000


@pytest.fixture
def topic(log: edgelog.Log) -> edgelog.Topic:
    """A topic of two partitions, with the records 0 to 4 in each."""
    topic = log.topic("topic", partitions=2)
    fill(topic, range(5))
    return topic


@pytest.fixture
def group(topic: edgelog.Topic) -> edgelog.Group:
    """An ordered group of it."""
    return topic.group("group", ordered=True, lease_ttl_ms=LONG_MS)


def fill(topic: edgelog.Topic, values: range) -> None:
    for partition in range(topic.options.partitions):
        topic.append_batch([b"%d" % value for value in values], partition=partition)


def places(records: list[Any]) -> list[tuple[int, int]]:
    return [(record.partition, record.offset) for record in records]


def holders(group: edgelog.Group) -> list[str | None]:
    return [lease.consumer for lease in group.leases()]


def held(group: edgelog.Group, name: str) -> list[int]:
    return [lease.partition for lease in group.leases(name)]


def read_all(consumer: edgelog.Consumer) -> list[edgelog.Record]:
    """What is new comes from one partition with each read."""
    return list(itertools.chain.from_iterable(iter(consumer.read, [])))


def let_all_come_again(group: edgelog.Group) -> None:
    """What comes again comes from all partitions with one read."""
    with group.consumer("before") as consumer:
        read_all(consumer)


def until(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.005)


# Groups and their options.


def test_options(topic: edgelog.Topic) -> None:
    options = topic.group("ordered", ordered=True).options
    assert (options.ordered, options.when_exhausted) == (True, "give_up")
    assert (options.lease_ttl_ms, options.processing_timeout_ms) == (10_000, 60_000)
    assert not topic.group("plain").options.ordered
    group = topic.group(
        "group",
        ordered=True,
        lease_ttl_ms=2000,
        processing_timeout_ms=edgelog.NEVER_MS,
        max_deliveries=3,
        when_exhausted="halt",
    )
    options = group.options
    assert (options.lease_ttl_ms, options.processing_timeout_ms) == (2000, edgelog.NEVER_MS)
    assert (options.max_deliveries, options.when_exhausted) == (3, "halt")
    assert repr(options).endswith(
        "max_deliveries=3, when_exhausted='halt', dead_letter=None, consumer_ttl_ms=0, "
        "ordered=True, lease_ttl_ms=2000, processing_timeout_ms=4294967295)"
    )
    # Who opens it need not say so again.
    assert topic.group("group").options == options
    group.configure(lease_ttl_ms=3000, when_exhausted="give_up")
    assert group.options.lease_ttl_ms == 3000
    assert group.options.when_exhausted == "give_up"
    assert group.options.processing_timeout_ms == edgelog.NEVER_MS
    group.configure(lease_ttl_ms=0, processing_timeout_ms=0)
    assert group.options.lease_ttl_ms == 10_000
    assert group.options.processing_timeout_ms == 60_000
    assert group.options.ordered


def test_wrong_options(topic: edgelog.Topic) -> None:
    plain = topic.group("plain")
    with pytest.raises(edgelog.InvalidError):
        topic.group("plain", ordered=True)
    with pytest.raises(edgelog.InvalidError):
        topic.group("halting", when_exhausted="halt")
    with pytest.raises(edgelog.InvalidError):
        plain.configure(when_exhausted="halt")
    with pytest.raises(edgelog.InvalidError, match="when_exhausted is one of 'give_up', 'halt'"):
        topic.group("other", ordered=True, when_exhausted="stop")  # type: ignore[arg-type]
    with pytest.raises(edgelog.InvalidError):
        topic.group("other", ordered=True, lease_ttl_ms=edgelog.NEVER_MS)
    with pytest.raises(edgelog.InvalidError):
        topic.group("other", ordered=True, lease_ttl_ms=-1)
    with pytest.raises(TypeError):
        topic.group("other", ordered="yes")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        plain.configure(ordered=True)  # type: ignore[call-arg]
    assert topic.groups() == ["plain"]


# Leases.


def test_leases(group: edgelog.Group) -> None:
    consumer = group.consumer("a")
    assert holders(group) == [None, None]
    assert [lease.epoch for lease in group.leases()] == [0, 0]
    leases = consumer.acquire()
    assert places_of(leases) == [(0, "a", 1), (1, "a", 2)]
    assert LONG_MS - 10_000 < leases[0].ends_in_ms <= LONG_MS
    assert not any(lease.draining or lease.halted for lease in leases)
    assert places_of(group.leases("a")) == places_of(group.leases(consumer="a"))
    assert group.leases("nobody") == []
    assert [consumer.epoch(partition) for partition in range(2)] == [1, 2]
    assert consumer.acquire(5000)[0].ends_in_ms <= 5000
    assert consumer.acquire(ttl_ms=100_000)[0].ends_in_ms > 90_000
    assert consumer.release(1) is None  # type: ignore[func-returns-value]
    assert places_of(group.leases()) == [(0, "a", 1), (1, None, 2)]
    assert group.leases()[1].ends_in_ms == 0
    consumer.release()
    assert holders(group) == [None, None]
    # Nobody else wants them, so it may have them again.
    assert places_of(consumer.acquire()) == [(0, "a", 3), (1, "a", 4)]


def places_of(leases: list[edgelog.Lease]) -> list[tuple[int, str | None, int]]:
    return [(lease.partition, lease.consumer, lease.epoch) for lease in leases]


def test_a_lease_is_a_value(group: edgelog.Group) -> None:
    [free, other] = group.leases()
    assert repr(free) == (
        "Lease(partition=0, consumer=None, epoch=0, ends_in_ms=0, draining=False, halted=False)"
    )
    assert free == group.leases()[0]
    assert hash(free) == hash(group.leases()[0])
    assert free != other
    assert free != (0, None, 0, 0, False, False)
    with pytest.raises(AttributeError):
        free.epoch = 1  # type: ignore[misc]
    with pytest.raises(TypeError):
        edgelog.Lease()
    [lease, _] = group.consumer("it's").acquire()
    assert 'consumer="it\'s"' in repr(lease)


def test_what_leases_refuse(topic: edgelog.Topic, group: edgelog.Group) -> None:
    consumer = group.consumer("a")
    with pytest.raises(edgelog.FencedError):
        consumer.epoch(0)
    with pytest.raises(edgelog.FencedError):
        consumer.release(0)
    consumer.acquire()
    wrong: list[Callable[[], object]] = [
        lambda: consumer.epoch(2),
        lambda: consumer.release(2),
        lambda: consumer.acquire(edgelog.NEVER_MS),
        lambda: consumer.acquire(-1),
        lambda: consumer.claim_idle(0),
        lambda: consumer.claim((0, 0)),
        lambda: group.leases(""),
    ]
    plain = topic.group("plain").consumer("a")
    wrong += [plain.acquire, plain.release, lambda: plain.epoch(0)]
    for call in wrong:
        with pytest.raises(edgelog.InvalidError):
            call()
    assert topic.group("plain").leases() == []
    with pytest.raises(TypeError):
        consumer.epoch()  # type: ignore[call-arg]
    consumer.close()
    closed: list[Callable[[], object]] = [consumer.acquire, consumer.release]
    closed.append(lambda: consumer.epoch(0))
    for call in closed:
        with pytest.raises(edgelog.ClosedError):
            call()


# Taking and giving.


def test_consumers_share_partitions(topic: edgelog.Topic, group: edgelog.Group) -> None:
    a, b = group.consumer("a"), group.consumer("b")
    assert sorted(places(read_all(a))) == ALL
    # All of it is under way, and one partition drains.
    assert b.read() == []
    assert [lease.draining for lease in group.leases()] == [False, True]
    fill(topic, range(5, 6))
    assert places(a.read()) == [(0, 5)]
    a.ack([(1, offset) for offset in range(4)])
    assert b.read() == []
    # It is handed over when all of it is settled.
    assert a.ack((1, 4)) == "done"
    assert holders(group) == ["a", None]
    assert places(b.read()) == [(1, 5)]
    assert holders(group) == ["a", "b"]
    assert b.epoch(1) > a.epoch(0)


def test_a_loop_hands_over(topic: edgelog.Topic, group: edgelog.Group, background: Any) -> None:
    let_all_come_again(group)
    a, b = group.consumer("a"), group.consumer("b")
    loop = a.records(batch=10)
    seen = [next(loop)]
    waiting = background(lambda: next(b.records()))
    until(lambda: any(lease.draining for lease in group.leases()))
    # It goes on with what it has, until all that it has of one is settled.
    while len(seen) < 5:
        seen.append(next(loop))
        assert holders(group) == ["a", "a"]
    seen.append(next(loop))
    until(lambda: holders(group) == ["b", "a"])
    seen += [next(loop) for _ in range(4)]
    assert places(seen) == ALL
    following = background(lambda: next(loop))
    fill(topic, range(5, 6))
    assert places([waiting.answer(), following.answer()]) == [(0, 5), (1, 5)]
    assert holders(group) == ["b", "a"]


@pytest.mark.parametrize("how", ["with", "close", "release", "garbage", "remove"])
def test_what_gives_back_at_once(group: edgelog.Group, how: str) -> None:
    consumer = group.consumer("a")
    first = places(consumer.read(max=3))
    if how == "with":
        with pytest.raises(ZeroDivisionError), consumer:
            _ = 1 / 0
    elif how == "close":
        consumer.close()
    elif how == "release":
        consumer.release()
    elif how == "remove":
        assert group.remove_consumer("a") == 3
    else:
        del consumer
    assert holders(group) == [None, None]
    # The next one begins with the oldest that is not acknowledged.
    assert places(group.consumer("b").read())[:3] == first


def test_what_expires_goes_to_others(topic: edgelog.Topic) -> None:
    group = topic.group("short", ordered=True, lease_ttl_ms=1000)
    a, b = group.consumer("a"), group.consumer("b")
    records = a.read()
    old = a.epoch(0)
    a.ack(records[0])
    assert places(b.read(max=1, timeout=30.0)) == [(0, 1)]
    assert b.epoch(0) > old
    assert_fenced(a, records)
    assert a.read() == []
    assert b.ack((0, 1)) == "done"


def assert_fenced(consumer: edgelog.Consumer, records: list[edgelog.Record]) -> None:
    """A consumer that has lost everything settles nothing, and is told once when it reads."""
    before = consumer.group.pending()
    calls: list[Callable[[], object]] = [
        lambda: consumer.ack(records),
        lambda: consumer.ack(records[-1]),
        lambda: consumer.ack_up_to(records[-1]),
        lambda: consumer.nack(records[-1]),
        lambda: consumer.extend(records),
        lambda: consumer.epoch(records[-1].partition),
    ]
    for call in calls:
        with pytest.raises(edgelog.FencedError) as raised:
            call()
        assert raised.value.partition in (0, 1)
        assert raised.value.code == "FENCED"
    assert places(consumer.group.pending()) == places(before)
    with pytest.raises(edgelog.FencedError):
        consumer.read()


def test_a_name_that_is_opened_again(group: edgelog.Group) -> None:
    let_all_come_again(group)
    old = group.consumer("a")
    records = old.read()
    new = group.consumer("a")
    assert new.read(take="own") == []
    assert places(new.read()) == places(records)
    assert_fenced(old, records)
    # As long as the other one goes on; a loop, too, has nothing to go on with.
    for call in (old.read, old.acquire, lambda: next(old.records())):
        with pytest.raises(edgelog.FencedError):
            call()
    old.close()
    assert holders(group) == ["a", "a"]
    assert new.ack(records) == ["done"] * 10


def test_a_holder_that_settles_nothing(topic: edgelog.Topic) -> None:
    group = topic.group("group", ordered=True, lease_ttl_ms=LONG_MS, processing_timeout_ms=STALL_MS)
    let_all_come_again(group)
    a, b = group.consumer("a"), group.consumer("b")
    records = a.read()
    assert places(take_partition_1(b, lambda: a.ack(records[0]))) == ALL[5:]
    # It may go on with the rest, but nothing is done of what it says of both.
    with pytest.raises(edgelog.FencedError) as raised:
        a.ack(records)
    assert raised.value.partition == 1
    assert a.ack(records[1:5]) == ["done"] * 4


def take_partition_1(b: edgelog.Consumer, settle: Callable[[], object]) -> list[edgelog.Record]:
    """Another one has both, and settles something of partition 0 only."""
    assert b.read(timeout=STALL_MS / 2000) == []
    settle()
    return b.read(timeout=30.0)


# Loops.


def test_an_ack_that_comes_too_late_ends_no_loop(group: edgelog.Group) -> None:
    loop = group.consumer("a").records(timeout=0)
    assert places([next(loop)]) == [(0, 0)]
    with group.consumer("a") as other:
        assert len(other.read(max=3)) == 3
    # It comes again.
    assert places([next(loop)]) == [(0, 0)]
    assert sorted(places(list(loop))) == ALL[1:]
    assert group.stats().pending == 0


@pytest.mark.parametrize("ack", ["auto", "explicit"])
def test_what_was_fetched_of_a_lost_partition_is_not_handed_out(
    topic: edgelog.Topic, ack: Any
) -> None:
    group = topic.group("group", ordered=True, lease_ttl_ms=LONG_MS, processing_timeout_ms=STALL_MS)
    let_all_come_again(group)
    a, b = group.consumer("a"), group.consumer("b")
    loop = a.records(timeout=0, ack=ack, batch=10)
    seen = [next(loop) for _ in range(3)]

    def settle() -> None:
        seen.append(next(loop))
        if ack == "explicit":
            a.ack(seen)

    got = take_partition_1(b, settle)
    seen += loop
    assert places(seen) == ALL[:5]
    if ack == "explicit":
        assert a.ack(seen[4]) == "done"
    assert places(group.pending()) == places(got) == ALL[5:]
    assert b.ack(got) == ["done"] * 5
    fill(topic, range(5, 6))
    assert places(list(a.records(0))) == [(0, 5)]


def test_what_was_fetched_under_a_lease_that_ran_out_comes_again(topic: edgelog.Topic) -> None:
    group = topic.group("group", ordered=True, lease_ttl_ms=500)
    let_all_come_again(group)
    loop = group.consumer("a").records(0, batch=10)
    first = next(loop)
    time.sleep(0.7)
    # Nobody else has taken it.
    again = list(loop)
    assert places([first]) + places(again) == [(0, 0), *ALL]
    assert [first.deliveries, again[0].deliveries, again[9].deliveries] == [2, 3, 3]


def test_what_was_read_elsewhere_is_not_handed_out_by_a_loop(group: edgelog.Group) -> None:
    let_all_come_again(group)
    consumer = group.consumer("a")
    loop = consumer.records(0, ack="explicit", batch=10)
    consumer.nack(next(loop), delay_ms=0)
    assert places(consumer.read()) == ALL[:5]
    assert places(list(loop)) == ALL[5:]


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("who", ["consumer", "group"])
def test_what_was_fetched_behind_a_refused_record_comes_behind_it(
    topic: edgelog.Topic, group: edgelog.Group, who: str, closed: bool
) -> None:
    let_all_come_again(group)
    consumer, operator = group.consumer("a"), topic.group("group")
    if closed:
        group.close()
    seen, refused = [], {(0, 1), (1, 0), (1, 3)}
    for record in consumer.records(0, batch=10):
        place = (record.partition, record.offset)
        if place in refused:
            refused.remove(place)
            nack = consumer.nack if who == "consumer" else operator.nack
            assert nack(record, delay_ms=0) == "done"
        else:
            seen.append(place)
    assert by_partition(seen) == ALL
    assert operator.stats().pending == 0


def by_partition(places: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Those of a partition stay in the order that they have."""
    return sorted(places, key=lambda place: place[0])


def test_a_refused_record_stops_its_partition_only(group: edgelog.Group) -> None:
    consumer = group.consumer("a")
    seen = []
    for record in consumer.records(0, ack="explicit", batch=10):
        if (record.partition, record.offset, record.deliveries) == (0, 2, 1):
            consumer.nack(record, delay_ms=300)
        else:
            seen.append(record)
            consumer.ack(record)
    assert by_partition(places(seen)) == [(0, 0), (0, 1), *ALL[5:]]
    rest = consumer.records(timeout=1.0, batch=10)
    assert places(list(rest)) == [(0, 2), (0, 3), (0, 4)]


def test_an_exception_refuses_one_record(group: edgelog.Group, log: edgelog.Log) -> None:
    group.configure(max_deliveries=2, dead_letter="dead")

    def work() -> None:
        with group.consumer("a") as consumer:
            for record in consumer.records(0, batch=10):
                if (record.partition, record.offset) == (0, 1):
                    raise ValueError("what a record")
                seen.append((record.partition, record.offset))

    seen: list[tuple[int, int]] = []
    for _ in range(2):
        with pytest.raises(ValueError, match="what a record"):
            work()
        # What was fetched behind it was no delivery.
        assert {one.deliveries for one in group.pending() if one.offset != 1} <= {0}
    work()
    assert by_partition(seen) == [place for place in ALL if place != (0, 1)]
    assert [dead.value for dead in log.topic("dead").reader()] == [b"1"]


def test_a_loop_that_is_left_gives_back(topic: edgelog.Topic) -> None:
    group = topic.group("group", ordered=True, lease_ttl_ms=LONG_MS, processing_timeout_ms=STALL_MS)
    let_all_come_again(group)
    a, b = group.consumer("a"), group.consumer("b")
    loop = a.records(batch=10)
    assert places([next(loop)]) == [(0, 0)]
    take_partition_1(b, functools.partial(next, loop))
    # That it has lost one partition keeps nothing of the other one from being given back.
    del loop
    states = [(one.consumer, one.deliveries) for one in group.pending(partition=0)]
    assert states == [("a", 2)] + [(None, 1)] * 3
    assert {one.consumer for one in group.pending(partition=1)} == {"b"}


def test_a_batch_may_take_longer_than_a_lease(topic: edgelog.Topic) -> None:
    group = topic.group("group", ordered=True, lease_ttl_ms=1000)
    let_all_come_again(group)
    consumer, other = group.consumer("a"), group.consumer("b")
    epochs = set()
    for record in consumer.records(0, batch=10):
        time.sleep(0.2)
        epochs.add(consumer.epoch(record.partition))
        assert record.deliveries == 2
    assert epochs == {3, 4}
    assert group.stats().acknowledged == 10
    assert other.read() == []


def test_a_loop_makes_no_lease_shorter(group: edgelog.Group) -> None:
    group.configure(lease_ttl_ms=1000)
    let_all_come_again(group)
    consumer = group.consumer("a")
    loop = consumer.records(batch=10)
    next(loop)
    consumer.acquire(LONG_MS)
    time.sleep(0.5)
    next(loop)
    assert group.leases("a")[0].ends_in_ms > LONG_MS / 2


def test_a_waiting_loop_takes_over(group: edgelog.Group, background: Any) -> None:
    a = group.consumer("a")
    assert len(read_all(a)) == 10
    loop = group.consumer("b").records(batch=10)
    waiting = background(lambda: [next(loop) for _ in range(10)])
    time.sleep(0.1)
    a.close()
    assert places(waiting.answer()) == ALL


def test_ctrl_c_ends_a_loop(group: edgelog.Group) -> None:
    threading.Timer(0.3, os.kill, [os.getpid(), signal.SIGINT]).start()
    with pytest.raises(KeyboardInterrupt), group.consumer("a") as consumer:
        for _ in consumer:
            pass
    assert group.stats().acknowledged == 10
    assert holders(group) == [None, None]

    def work() -> None:
        with group.consumer("a") as consumer:
            for _ in consumer.records(batch=10):
                raise KeyboardInterrupt

    fill(group.topic, range(5, 8))
    let_all_come_again(group)
    with pytest.raises(KeyboardInterrupt):
        work()
    assert [(one.consumer, one.deliveries) for one in group.pending()] == [(None, 1)] * 6


def test_handling_acknowledges_what_is_not_lost(topic: edgelog.Topic) -> None:
    group = topic.group("group", ordered=True, lease_ttl_ms=LONG_MS, processing_timeout_ms=STALL_MS)
    let_all_come_again(group)
    a, b = group.consumer("a"), group.consumer("b")
    records = a.read()
    take_partition_1(b, lambda: a.ack(records[0]))
    handling = a.handling([records[9], *records[1:4]])
    with handling:
        pass
    assert handling.outcome == ["not_owner", "done", "done", "done"]
    refusing = a.handling(records[4:])
    with pytest.raises(ZeroDivisionError), refusing:
        _ = 1 / 0
    assert refusing.outcome == ["done"] + ["not_owner"] * 5
    one = a.handling(records[9])
    with one:
        pass
    assert one.outcome == "not_owner"
    assert b.ack(records[5:]) == ["done"] * 5


# Records that fail.


def test_what_is_exhausted_is_given_up(group: edgelog.Group, log: edgelog.Log) -> None:
    group.configure(max_deliveries=2, dead_letter="dead")
    consumer = group.consumer("a")
    seen = []
    for record in consumer.records(0, batch=10):
        if (record.partition, record.offset) == (0, 1):
            consumer.nack(record, delay_ms=0, reason="no")
        else:
            seen.append(record)
    assert by_partition(places(seen)) == [place for place in ALL if place != (0, 1)]
    assert [dead.value for dead in log.topic("dead").reader()] == [b"1"]
    assert group.stats().given_up == 1


def test_what_is_exhausted_halts(topic: edgelog.Topic, group: edgelog.Group) -> None:
    group.configure(max_deliveries=2, when_exhausted="halt")
    consumer = group.consumer("a")
    seen = []
    for record in consumer.records(0):
        if (record.partition, record.offset) == (0, 1):
            consumer.nack(record, delay_ms=0)
        else:
            seen.append(record)
    assert places(seen) == [(0, 0)] + [(1, offset) for offset in range(5)]
    assert [lease.halted for lease in group.leases()] == [True, False]
    assert places(list(consumer.records(0))) == []
    assert group.stats().given_up == 0
    [pending] = group.pending()
    assert (pending.offset, pending.deliveries) == (1, 2)
    assert group.ack(pending) == "done"
    assert places(list(consumer.records(0))) == [(0, 2), (0, 3), (0, 4)]
    assert not any(lease.halted for lease in group.leases())


# Threads and forks.


def test_other_threads_while_one_reads(
    topic: edgelog.Topic, group: edgelog.Group, background: Any
) -> None:
    consumer = group.consumer("a")
    consumer.ack(read_all(consumer))
    waiting = background(lambda: consumer.read(timeout=None))
    time.sleep(0.1)
    assert len(consumer.acquire()) == 2
    epoch = consumer.epoch(0)
    consumer.release(0)
    until(lambda: holders(group) == ["a", "a"])
    assert consumer.epoch(0) > epoch
    consumer.release()
    until(lambda: holders(group) == ["a", "a"])
    fill(topic, range(5, 6))
    assert waiting.answer()[0].offset == 5


def test_a_forked_child_harms_nothing(group: edgelog.Group) -> None:
    consumer = group.consumer("a")
    loop = consumer.records(batch=10, ack="explicit")
    record = next(loop)
    before = group.leases()

    def child() -> None:
        calls: list[Callable[[], object]] = [
            consumer.acquire,
            consumer.release,
            lambda: consumer.epoch(0),
            group.leases,
            lambda: next(loop),
            consumer.close,
        ]
        for call in calls:
            with pytest.raises(edgelog.ForkedError):
                call()
        consumer.__exit__(None, None, None)

    in_child(child)
    assert places_of(group.leases()) == places_of(before)
    assert consumer.ack(record) == "done"
    assert places([next(loop)]) == [(0, 1)]


def test_keys_stay_in_order_whoever_comes_and_goes(log: edgelog.Log) -> None:
    topic = log.topic("keys", partitions=5)
    group = topic.group("group", ordered=True, lease_ttl_ms=LONG_MS)
    total = 400
    lock = threading.Lock()
    done: dict[int, int] = dict.fromkeys(range(5), -1)
    wrong: list[tuple[int, int, int]] = []
    rng = random.Random(7)

    def work(name: str, seed: int) -> None:
        rng = random.Random(seed)
        with group.consumer(name) as consumer:
            for record in consumer.records(timeout=0.5, batch=rng.choice([1, 3, 20])):
                place = record.partition
                with lock:
                    if record.offset != done[place] + 1:
                        wrong.append((place, record.offset, done[place]))
                    fails = rng.random() < 0.1
                    done[place] += not fails
                if fails and rng.random() < 0.5:
                    consumer.nack(record, delay_ms=rng.choice([0, 5]))
                elif fails:
                    raise ValueError
                if rng.random() < 0.02:
                    consumer.ack(record) if not fails else None
                    return

    def worker(name: str) -> None:
        for turn in itertools.count():
            with contextlib.suppress(ValueError):
                work(name, hash((name, turn)))
            if sum(done.values()) + 5 >= total:
                return

    threads = [threading.Thread(target=worker, args=[f"worker {n}"]) for n in range(4)]
    for thread in threads:
        thread.start()
    for number in range(total):
        topic.append(b"%d" % number, key=rng.randrange(40))
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert wrong == []
    assert sum(offset + 1 for offset in done.values()) == total
    assert group.stats().pending == 0


# Asyncio.


def test_asyncio_leases(group: edgelog.Group) -> None:
    async def main() -> None:
        async with aio.Consumer(group.consumer("a")) as consumer:
            assert places_of(await consumer.acquire()) == [(0, "a", 1), (1, "a", 2)]
            assert (await consumer.acquire(ttl_ms=5000))[0].ends_in_ms <= 5000
            assert await consumer.epoch(1) == 2
            await consumer.release(1)
            with pytest.raises(edgelog.FencedError):
                await consumer.epoch(1)
            await consumer.release()
            assert holders(group) == [None, None]
            await consumer.read()
        assert holders(group) == [None, None]

    asyncio.run(main())


def test_asyncio_loops_keep_the_order(group: edgelog.Group) -> None:
    async def main() -> None:
        refused = {(0, 1), (1, 0), (1, 3)}
        async with aio.Consumer(group.consumer("a")) as consumer:
            async for record in consumer.records(0, batch=10):
                place = (record.partition, record.offset)
                if place in refused:
                    refused.remove(place)
                    await consumer.nack(record, delay_ms=0)
                else:
                    seen.append(place)

    let_all_come_again(group)
    seen: list[tuple[int, int]] = []
    asyncio.run(main())
    assert by_partition(seen) == ALL


def test_asyncio_loops_go_on_when_fenced(topic: edgelog.Topic, group: edgelog.Group) -> None:
    async def main() -> None:
        async with aio.Consumer(group.consumer("a")) as consumer:
            loop = consumer.records(timeout=5.0, batch=10)
            assert places([await loop.__anext__()]) == [(0, 0)]
            with group.consumer("a") as other:
                assert len(other.read(max=2)) == 2
            seen = [await loop.__anext__() for _ in range(10)]
            assert by_partition(places(seen)) == ALL
            with group.consumer("a"):
                pass
            with pytest.raises(edgelog.FencedError):
                await consumer.ack(seen[-1])
            with pytest.raises(edgelog.FencedError):
                await consumer.read(timeout=None)

    asyncio.run(main())


def test_asyncio_consumers_share(topic: edgelog.Topic, group: edgelog.Group) -> None:
    async def work(name: str) -> list[tuple[int, int]]:
        async with aio.Consumer(group.consumer(name)) as consumer:
            seen = []
            async for record in consumer.records(timeout=0.5):
                await asyncio.sleep(0.002)
                seen.append((record.partition, record.offset))
            return seen

    async def main() -> list[list[tuple[int, int]]]:
        fill(topic, range(5, 40))
        return list(await asyncio.gather(work("a"), work("b")))

    seen = asyncio.run(main())
    assert all(seen)
    assert sorted(seen[0] + seen[1]) == list(itertools.product(range(2), range(40)))
    for own in seen:
        for partition in range(2):
            offsets = [place[1] for place in own if place[0] == partition]
            assert offsets == sorted(offsets)


def test_a_task_that_is_cancelled_gives_back(topic: edgelog.Topic) -> None:
    group = topic.group("group", ordered=True, start="latest", lease_ttl_ms=LONG_MS)

    async def main() -> None:
        async with aio.Consumer(group.consumer("a")) as consumer:
            for number in range(20):
                waiting = asyncio.create_task(consumer.read(timeout=None))
                await asyncio.sleep(0.002)
                topic.append(b"%d" % number, partition=0)
                waiting.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    seen.extend(await waiting)
            while len(seen) < 20:
                seen.extend(await consumer.read(timeout=5))

    seen: list[edgelog.Record] = []
    asyncio.run(main())
    assert [record.offset for record in seen] == list(range(5, 25))


# What ordered groups are for.


def worker() -> str:
    """The worker in docs/ordered.md."""
    [worker] = samples(DOCS / "ordered.md")
    return worker


def test_the_worker_is_short() -> None:
    assert len(worker().splitlines()) <= 20


def test_workers_that_are_killed_keep_the_order(tmp_path: Path) -> None:
    batches, names = 12, ["one", "two", "three"]

    def start(name: str) -> subprocess.Popen[bytes]:
        with open(tmp_path / f"{name}.done", "ab") as done:
            command = [sys.executable, "-c", worker(), name]
            return subprocess.Popen(command, stdout=done, cwd=tmp_path)

    with edgelog.open(tmp_path / "shop") as log:
        topic = log.topic("orders", partitions=8)
        workers = {name: start(name) for name in names}
        for _ in range(batches):
            for _ in range(100):
                topic.append(b"order", key=f"customer {random.randrange(50)}")
            name = random.choice(names)
            time.sleep(random.uniform(0.05, 0.3))
            workers[name].kill()
            workers[name].wait()
            workers[name] = start(name)
        assert [worker.wait(60) for worker in workers.values()] == [0, 0, 0]
        group = topic.group("billing", create=False)
        stats = group.stats()
        assert (stats.lag, stats.pending, stats.given_up) == (0, 0, 0)
        assert stats.acknowledged == batches * 100
        assert holders(group) == [None] * 8
    files = [tmp_path / f"{name}.done" for name in names]
    lines = [line.split() for file in files for line in file.read_text().splitlines()]
    for partition in range(8):
        # Those of one epoch are of one process, and in its order. Epochs only rise.
        of_it = [(int(line[2]), int(line[1])) for line in lines if int(line[0]) == partition]
        done = [offset for _, offset in sorted(of_it, key=lambda one: one[0])]
        if done:
            assert done[0] == 0
        # What was under way when a worker was killed was done again, and nothing else.
        steps = [after - before for before, after in zip(done, done[1:])]
        assert set(steps) <= {0, 1}
    assert len(lines) - batches * 100 <= batches
