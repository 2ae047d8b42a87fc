"""Waiting with asyncio: other tasks run, and a task that is cancelled loses nothing."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections.abc import AsyncIterator
from typing import Any

import edgelog
import pytest
from edgelog import aio


@pytest.fixture
def group(topic: edgelog.Topic) -> edgelog.Group:
    """A group of a topic with the records 0 to 4."""
    topic.append_batch([b"%d" % number for number in range(5)])
    return topic.group("group")


def offsets(records: list[Any]) -> list[int]:
    return [record.offset for record in records]


def test_a_reader_waits_and_others_run(topic: edgelog.Topic) -> None:
    async def main() -> None:
        async with aio.Reader(topic.reader()) as reader:
            assert await reader.read() == []
            begin = time.monotonic()
            assert await reader.read(timeout=0.1) == []
            assert 0.09 <= time.monotonic() - begin < 10
            waiting = asyncio.create_task(reader.read(timeout=None))
            await asyncio.sleep(0.1)
            assert not waiting.done()
            topic.append(b"x")
            assert [record.value for record in await waiting] == [b"x"]
        assert reader.reader.closed
        with pytest.raises(edgelog.ClosedError):
            reader.reader.read()

    asyncio.run(main())


def test_a_cancelled_reader_goes_on_where_it_was(topic: edgelog.Topic) -> None:
    async def main() -> None:
        async with aio.Reader(topic.reader()) as reader:
            for number in range(30):
                waiting = asyncio.create_task(reader.read(timeout=None))
                await asyncio.sleep(0.002)
                topic.append(b"%d" % number)
                waiting.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    for record in await waiting:
                        seen.append(record.offset)
            while len(seen) < 30:
                seen.extend(offsets(await reader.read(timeout=5)))

    seen: list[int] = []
    asyncio.run(main())
    assert seen == list(range(30))


def test_follow(topic: edgelog.Topic) -> None:
    async def numbers() -> AsyncIterator[int]:
        async with aio.Reader(topic.reader()) as reader:
            async for record in reader.follow(timeout=0.2):
                yield record.offset

    async def main() -> list[int]:
        topic.append_batch([b"x"] * 300)
        return [number async for number in numbers()]

    assert asyncio.run(main()) == list(range(300))


def test_reading_and_settling(group: edgelog.Group) -> None:
    async def main() -> None:
        async with aio.Consumer(group.consumer("a")) as a:
            assert a.name == a.consumer.name == "a"
            records = await a.read(max=4)
            assert offsets(records) == [0, 1, 2, 3]
            assert a.last_delivery.records == a.total_delivery.records == 4
            assert await a.ack(records[0]) == "done"
            assert await a.ack(records[:2]) == ["already", "done"]
            assert await a.extend(records[2]) == "done"
            assert await a.nack(records[3], delay_ms=0, reason="why not") == "done"
            assert await a.ack_up_to(records[2]) == 1
            assert offsets(await a.read(take="new")) == [4]
            assert offsets(await a.read(take="own", timeout=None)) == [4]
            assert await a.read(take="own", timeout=None) == []
        async with aio.Consumer(group.consumer("b")) as b:
            assert offsets(await b.claim((0, 4))) == [4]
            assert offsets(await b.claim_from("b")) == [4]
            assert offsets(await b.claim_idle(0, uncounted=True)) == [3, 4]
            group.topic.append(b"5")
            assert offsets(await b.read(at_most_once=True)) == [5]

    asyncio.run(main())
    assert [(one.offset, one.deliveries) for one in group.pending()] == [(3, 1), (4, 3)]


def test_a_loop_acknowledges(group: edgelog.Group) -> None:
    async def main() -> list[int]:
        seen = []
        async with aio.Consumer(group.consumer("a")) as consumer:
            async for record in consumer.records(timeout=0, batch=2):
                assert record.offset in offsets(group.pending())
                seen.append(record.offset)
        return seen

    assert asyncio.run(main()) == [0, 1, 2, 3, 4]
    assert group.pending() == []
    assert group.stats().acknowledged == 5


def test_a_loop_that_an_exception_leaves_refuses(group: edgelog.Group, log: edgelog.Log) -> None:
    group.configure(max_deliveries=1, dead_letter="dead")

    async def main() -> None:
        async with aio.Consumer(group.consumer("a")) as consumer:
            async for record in consumer:
                await asyncio.sleep(0)
                if record.offset == 1:
                    raise ValueError("what a record")

    with pytest.raises(ValueError, match="what a record"):
        asyncio.run(main())
    [dead] = log.topic("dead").reader()
    assert dead.value == b"1"
    assert b"ValueError: what a record" in dict(dead.headers).values()


def test_a_task_cancelled_in_the_loop_gives_back(group: edgelog.Group) -> None:
    async def main() -> None:
        async with aio.Consumer(group.consumer("a")) as consumer:

            async def work() -> None:
                async for _ in consumer.records(batch=3):
                    await asyncio.sleep(60)

            working = asyncio.create_task(work())
            while group.stats().pending < 3:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.05)
            working.cancel()
            with pytest.raises(asyncio.CancelledError):
                await working

    asyncio.run(main())
    assert [(one.consumer, one.deliveries) for one in group.pending()] == [(None, 0)] * 3


def test_a_cancelled_read_gives_back(topic: edgelog.Topic) -> None:
    group = topic.group("group")

    async def main() -> None:
        async with aio.Consumer(group.consumer("a")) as consumer:
            for number in range(30):
                waiting = asyncio.create_task(consumer.read(timeout=None))
                await asyncio.sleep(0.002)
                topic.append(b"%d" % number)
                waiting.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    seen.extend(offsets(await waiting))
            # What a cancelled task was given is there again, and a stale wake ends no wait.
            while len(set(seen)) < 30:
                seen.extend(offsets(await consumer.read(timeout=5)))

    seen: list[int] = []
    asyncio.run(main())
    assert sorted(seen) == list(range(30))
    assert {pending.deliveries for pending in group.pending()} == {1}


def test_wake_and_cancel(topic: edgelog.Topic) -> None:
    async def main() -> None:
        async with aio.Consumer(topic.group("group").consumer("a")) as consumer:
            for call in (consumer.read(timeout=None), all_of(consumer)):
                waiting = asyncio.create_task(call)
                await asyncio.sleep(0.05)
                consumer.wake()
                assert await waiting == []
            consumer.wake()
            assert await consumer.read() == await consumer.claim_idle(0) == []
            assert await consumer.read(timeout=None) == []
            waiting = asyncio.create_task(consumer.read(timeout=None))
            await asyncio.sleep(0.05)
            consumer.cancel()
            with pytest.raises(edgelog.CancelledError):
                await waiting

    async def all_of(consumer: aio.Consumer) -> list[edgelog.Record]:
        return [record async for record in consumer]

    asyncio.run(main())


def test_closing_ends_a_wait(topic: edgelog.Topic) -> None:
    async def main() -> None:
        consumer = aio.Consumer(topic.group("group").consumer("a"))
        waiting = asyncio.create_task(consumer.read(timeout=None))
        await asyncio.sleep(0.05)
        await consumer.close()
        with pytest.raises(edgelog.ClosedError):
            await waiting
        await consumer.close()

    asyncio.run(main())


def test_the_end_of_the_loop_ends_a_wait(topic: edgelog.Topic) -> None:
    async def main() -> None:
        consumer = aio.Consumer(topic.group("group").consumer("a"))
        tasks.append(asyncio.create_task(consumer.read(timeout=None)))
        await asyncio.sleep(0.05)

    tasks: list[asyncio.Task[list[edgelog.Record]]] = []
    begin = time.monotonic()
    asyncio.run(main())
    assert time.monotonic() - begin < 10
    assert tasks[0].cancelled()


def test_handling(group: edgelog.Group) -> None:
    async def main() -> None:
        async with aio.Consumer(group.consumer("a")) as consumer:
            records = await consumer.read()
            handling = consumer.handling(records[0])
            assert handling.outcome is None
            async with handling as record:
                assert record is records[0]
            assert handling.outcome == "done"
            with pytest.raises(KeyError):
                async with consumer.handling(records[1:3]) as two:
                    raise KeyError(two)
            with pytest.raises(asyncio.CancelledError):
                async with consumer.handling(records[3]):
                    raise asyncio.CancelledError

    asyncio.run(main())
    states = [(one.offset, one.consumer, one.deliveries) for one in group.pending()]
    assert states == [(1, None, 1), (2, None, 1), (3, None, 0), (4, "a", 1)]


def test_many_consumers_wait_at_once(topic: edgelog.Topic) -> None:
    group = topic.group("group")

    async def main() -> list[int]:
        async def take(name: str) -> list[int]:
            async with aio.Consumer(group.consumer(name)) as consumer:
                return offsets(await consumer.read(max=1, timeout=30))

        tasks = [asyncio.create_task(take(f"{number}")) for number in range(20)]
        await asyncio.sleep(0.2)
        topic.append_batch([b"x"] * 20)
        return sorted(itertools.chain.from_iterable(await asyncio.gather(*tasks)))

    assert asyncio.run(main()) == list(range(20))
