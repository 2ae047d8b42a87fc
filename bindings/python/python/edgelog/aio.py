"""Waiting for records with asyncio.

What can take long has its counterpart here; everything else is the plain package's:

    consumer = aio.Consumer(group.consumer("worker"))
    async with consumer:
        async for record in consumer:  # waits for ever, and lets other tasks run
            await send(record.value)

Each object has a thread of its own for its waits, so that it takes none from others. A task that is
cancelled while it waits loses nothing: what was read meanwhile is given back.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import TYPE_CHECKING, Callable, Generic, Literal, TypeVar, overload

import edgelog

if TYPE_CHECKING:
    from typing_extensions import Self

    from edgelog._edgelog import _Outcome, _Take, _Where

__all__ = ["Consumer", "ConsumerRecords", "Handling", "Reader"]

_T = TypeVar("_T")
_Handled = TypeVar("_Handled", bound="_Where | Iterable[_Where]")


class _Waiter:
    """A thread for the waits of one object."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._woken = threading.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="edgelog")

    def wake(self) -> None:
        self._woken.set()
        self._wake()

    def close(self) -> None:
        self._thread.shutdown(wait=False)

    async def wait(
        self,
        call: Callable[[float | None], _T],
        timeout: float | None,
        spill: Callable[[_T], object] | None = None,
    ) -> _T:
        """Call in the thread until there is an answer, or the time is over, or wake is called.

        When the task is cancelled, the call is sent home, and its answer goes to spill.
        """
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[_T] = loop.create_future()
        stopped = threading.Event()
        future = self._thread.submit(self._repeat, call, timeout, stopped)

        def done(future: Future[_T]) -> None:
            # A loop that is closed has nobody left who waits.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(_settle, answer, future)

        future.add_done_callback(done)
        # The thread may let go of a call a little later than the task goes on.
        del call
        try:
            return await answer
        except asyncio.CancelledError:
            stopped.set()
            if not future.cancel():
                with contextlib.suppress(edgelog.Error):
                    self._wake()
                if spill is not None:
                    future.add_done_callback(lambda future: _spill(future, spill))
            raise

    def _repeat(
        self, call: Callable[[float | None], _T], timeout: float | None, stopped: threading.Event
    ) -> _T:
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            rest = None if deadline is None else max(0.0, deadline - time.monotonic())
            if stopped.is_set() or self._woken.is_set():
                rest = 0.0
            answer = call(rest)
            # A wait may have been ended for a task that was cancelled before this one.
            if answer or rest == 0.0:
                # A call that would not have waited leaves the wake for a later one.
                if not answer and timeout != 0.0:
                    self._woken.clear()
                return answer


def _settle(answer: asyncio.Future[_T], future: Future[_T]) -> None:
    if answer.cancelled() or future.cancelled():
        return
    error = future.exception()
    if error is not None:
        answer.set_exception(error)
    else:
        answer.set_result(future.result())


def _spill(future: Future[_T], spill: Callable[[_T], object]) -> None:
    # Whoever would hear of an error is gone.
    with contextlib.suppress(edgelog.Error):
        spill(future.result())


class Reader:
    """Reads a topic without blocking the event loop, one task at a time.

    It takes over a reader, which nobody else may use then.
    """

    def __init__(self, reader: edgelog.Reader) -> None:
        self._reader = reader
        self._waiter = _Waiter(reader.wake)
        self._ready: deque[edgelog.Record] = deque()

    @property
    def reader(self) -> edgelog.Reader:
        """The reader that it took over."""
        return self._reader

    async def read(self, max: int = 256, timeout: float | None = 0.0) -> list[edgelog.Record]:
        """Read at least one record and at most max: see edgelog.Reader.read."""
        if self._ready and max > 0:
            return [self._ready.popleft() for _ in range(min(max, len(self._ready)))]
        reader = self._reader
        return await self._waiter.wait(
            lambda rest: reader.read(max, rest), timeout, self._ready.extend
        )

    async def follow(self, timeout: float | None = None) -> AsyncIterator[edgelog.Record]:
        """Iterate for ever: see edgelog.Reader.follow."""
        while True:
            records = await self.read(timeout=timeout)
            if not records:
                return
            # What is not handed out is read again.
            self._ready.extend(records)
            while self._ready:
                yield self._ready.popleft()

    def wake(self) -> None:
        """End the wait under way, or the next one. For any thread."""
        self._waiter.wake()

    def cancel(self) -> None:
        """Let the read under way and all later ones fail with CancelledError. For any thread."""
        self._ready.clear()
        self._reader.cancel()

    async def close(self) -> None:
        """Close it; a read under way fails. A second time does nothing."""
        await asyncio.to_thread(self._reader.close)
        self._waiter.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, *_exception: type[BaseException] | BaseException | TracebackType | None
    ) -> None:
        await self.close()


class Consumer:
    """A consumer of a group that does not block the event loop.

    It takes over a consumer. One task at a time reads and claims; everything else is for any task.
    """

    def __init__(self, consumer: edgelog.Consumer) -> None:
        self._consumer = consumer
        self._waiter = _Waiter(consumer.wake)

    @property
    def consumer(self) -> edgelog.Consumer:
        """The consumer that it took over."""
        return self._consumer

    @property
    def name(self) -> str:
        """Its name."""
        return self._consumer.name

    @property
    def last_delivery(self) -> edgelog.Delivery:
        """What the last read or claim delivered, and what it found on the way."""
        return self._consumer.last_delivery

    @property
    def total_delivery(self) -> edgelog.Delivery:
        """The same, of all reads and claims."""
        return self._consumer.total_delivery

    async def read(
        self,
        max: int = 256,
        timeout: float | None = 0.0,
        *,
        max_bytes: int | None = None,
        take: _Take | None = None,
        at_most_once: bool = False,
    ) -> list[edgelog.Record]:
        """Read at least one record and at most max: see edgelog.Consumer.read.

        A task that is cancelled meanwhile has got none: they come again at once, and that was no
        delivery. FencedError, once: it has lost a partition of an ordered group.
        """

        def read(rest: float | None) -> list[edgelog.Record]:
            return self._consumer.read(
                max, rest, max_bytes=max_bytes, take=take, at_most_once=at_most_once
            )

        timeout = 0.0 if take == "own" else timeout
        return await self._waiter.wait(read, timeout, self._consumer._give_back)

    def records(
        self,
        timeout: float | None = None,
        *,
        ack: Literal["auto", "explicit"] | None = None,
        batch: int = 1,
        take: _Take | None = None,
    ) -> ConsumerRecords:
        """Iterate over records and wait for new ones: see edgelog.Consumer.records."""
        records = self._consumer.records(timeout, ack=ack, batch=batch, take=take)
        return ConsumerRecords(self._waiter, records, 0.0 if take == "own" else timeout)

    def __aiter__(self) -> ConsumerRecords:
        return self.records()

    def handling(self, records: _Handled) -> Handling[_Handled]:
        """For `async with`: see edgelog.Consumer.handling."""
        return Handling(self._consumer.handling(records))

    @overload
    async def ack(self, records: _Where) -> _Outcome: ...
    @overload
    async def ack(self, records: Iterable[_Where]) -> list[_Outcome]: ...
    async def ack(self, records: _Where | Iterable[_Where]) -> _Outcome | list[_Outcome]:
        """Acknowledge records that it has: see edgelog.Consumer.ack."""
        ack: Callable[..., _Outcome | list[_Outcome]] = self._consumer.ack
        return await asyncio.to_thread(ack, records)

    async def ack_up_to(self, record: _Where) -> int:
        """Acknowledge all that it has of a partition up to this record."""
        return await asyncio.to_thread(self._consumer.ack_up_to, record)

    @overload
    async def nack(
        self,
        records: _Where,
        *,
        delay_ms: int | None = None,
        reason: str = "",
        uncounted: bool = False,
    ) -> _Outcome: ...
    @overload
    async def nack(
        self,
        records: Iterable[_Where],
        *,
        delay_ms: int | None = None,
        reason: str = "",
        uncounted: bool = False,
    ) -> list[_Outcome]: ...
    async def nack(
        self,
        records: _Where | Iterable[_Where],
        *,
        delay_ms: int | None = None,
        reason: str = "",
        uncounted: bool = False,
    ) -> _Outcome | list[_Outcome]:
        """Refuse records that it has: see edgelog.Consumer.nack."""
        nack: Callable[..., _Outcome | list[_Outcome]] = self._consumer.nack
        return await asyncio.to_thread(
            nack, records, delay_ms=delay_ms, reason=reason, uncounted=uncounted
        )

    @overload
    async def extend(self, records: _Where) -> _Outcome: ...
    @overload
    async def extend(self, records: Iterable[_Where]) -> list[_Outcome]: ...
    async def extend(self, records: _Where | Iterable[_Where]) -> _Outcome | list[_Outcome]:
        """Begin ack_timeout_ms anew for records that it has: see edgelog.Consumer.extend."""
        extend: Callable[..., _Outcome | list[_Outcome]] = self._consumer.extend
        return await asyncio.to_thread(extend, records)

    async def claim(
        self,
        records: _Where | Iterable[_Where],
        *,
        min_idle_ms: int = 0,
        min_deliveries: int = 0,
        max_bytes: int | None = None,
        uncounted: bool = False,
    ) -> list[edgelog.Record]:
        """Take over pending records, of whoever has them: see edgelog.Consumer.claim."""

        def claim(_rest: float | None) -> list[edgelog.Record]:
            return self._consumer.claim(
                records,
                min_idle_ms=min_idle_ms,
                min_deliveries=min_deliveries,
                max_bytes=max_bytes,
                uncounted=uncounted,
            )

        return await self._waiter.wait(claim, 0.0, self._consumer._give_back)

    async def claim_from(
        self,
        name: str,
        *,
        max: int = 256,
        min_idle_ms: int = 0,
        min_deliveries: int = 0,
        max_bytes: int | None = None,
        uncounted: bool = False,
    ) -> list[edgelog.Record]:
        """Take over what a consumer has pending: see edgelog.Consumer.claim_from."""

        def claim(_rest: float | None) -> list[edgelog.Record]:
            return self._consumer.claim_from(
                name,
                max=max,
                min_idle_ms=min_idle_ms,
                min_deliveries=min_deliveries,
                max_bytes=max_bytes,
                uncounted=uncounted,
            )

        return await self._waiter.wait(claim, 0.0, self._consumer._give_back)

    async def claim_idle(
        self,
        min_idle_ms: int,
        *,
        max: int = 256,
        min_deliveries: int = 0,
        max_bytes: int | None = None,
        uncounted: bool = False,
    ) -> list[edgelog.Record]:
        """Take over what was delivered long ago: see edgelog.Consumer.claim_idle."""

        def claim(_rest: float | None) -> list[edgelog.Record]:
            return self._consumer.claim_idle(
                min_idle_ms,
                max=max,
                min_deliveries=min_deliveries,
                max_bytes=max_bytes,
                uncounted=uncounted,
            )

        return await self._waiter.wait(claim, 0.0, self._consumer._give_back)

    async def acquire(self, ttl_ms: int | None = None) -> list[edgelog.Lease]:
        """Take the partitions that it is to have: see edgelog.Consumer.acquire."""
        return await asyncio.to_thread(self._consumer.acquire, ttl_ms)

    async def release(self, partition: int | None = None) -> None:
        """Give back a partition, or all that it has: see edgelog.Consumer.release."""
        await asyncio.to_thread(self._consumer.release, partition)

    async def epoch(self, partition: int) -> int:
        """Tell the epoch under which it has a partition: see edgelog.Consumer.epoch."""
        return await asyncio.to_thread(self._consumer.epoch, partition)

    def wake(self) -> None:
        """End the wait under way, or the next one. For any thread."""
        self._waiter.wake()

    def cancel(self) -> None:
        """Let the read under way and all later ones fail with CancelledError. For any thread."""
        self._consumer.cancel()

    async def close(self) -> None:
        """Close it; a read under way fails. A second time does nothing."""
        await asyncio.to_thread(self._consumer.close)
        self._waiter.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, *_exception: type[BaseException] | BaseException | TracebackType | None
    ) -> None:
        await self.close()


class ConsumerRecords:
    """Iterates over a consumer's records, and says what became of them.

    See edgelog.Consumer.records. A task that is cancelled in the body of the loop has done no
    delivery; the record comes again at once.
    """

    def __init__(
        self, waiter: _Waiter, records: edgelog.ConsumerRecords, timeout: float | None
    ) -> None:
        self._waiter = waiter
        self._records = records
        self._timeout = timeout

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> edgelog.Record:
        # This object alone may hold the iterator when the body of the loop runs: letting go of it
        # is how it learns that an exception has left the loop. So the thread gets it in a box, and
        # empties that before it answers.
        box = [self._records]

        def advance(rest: float | None) -> bool:
            records = next(iter(box), None)
            return records is not None and records._advance(rest)

        try:
            found = await self._waiter.wait(advance, self._timeout)
        finally:
            box.clear()
        record = self._records._pop() if found else None
        if record is None:
            raise StopAsyncIteration
        return record


class Handling(Generic[_Handled]):
    """For `async with`: see edgelog.Consumer.handling."""

    def __init__(self, handling: edgelog.Handling[_Handled]) -> None:
        self._handling = handling

    @property
    def outcome(self) -> _Outcome | list[_Outcome] | None:
        """What became of the records; None before the end of the block."""
        return self._handling.outcome

    async def __aenter__(self) -> _Handled:
        return self._handling.__enter__()

    async def __aexit__(
        self, *exception: type[BaseException] | BaseException | TracebackType | None
    ) -> None:
        await asyncio.to_thread(self._handling.__exit__, *exception)
