"""Processes: fork, multiprocessing, and logs that others hold."""

import multiprocessing
import os
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import edgelog
import pytest

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")


def in_child(function: Callable[[], None]) -> None:
    """Runs a function in a forked child and fails if it fails there."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            function()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert status == 0


def test_a_child_is_told_forked_and_harms_nothing(path: Path) -> None:
    with edgelog.open(path) as log:
        topic = log.topic("topic")
        topic.append(b"1")
        reader = topic.reader()
        next(reader)
        topic.append(b"2", durability="buffered")

        def child() -> None:
            calls: list[Callable[[], object]] = [
                lambda: topic.append(b"child"),
                lambda: topic.append_batch([b"child"]),
                topic.flush,
                topic.sync,
                topic.stats,
                topic.reader,
                lambda: topic.latest("key"),
                topic.close,
                log.flush,
                log.topics,
                lambda: log.topic("other"),
                log.verify,
                log.close,
                reader.read,
                reader.wake,
                reader.close,
            ]
            for call in calls:
                with pytest.raises(edgelog.ForkedError):
                    call()

        in_child(child)
        topic.append(b"3")
        assert [record.value for record in topic.reader()] == [b"1", b"2", b"3"]
        assert not log.verify()
    with edgelog.open(path) as log:
        assert log.topic("topic").stats().records == 3


def test_with_blocks_end_quietly_in_a_child(path: Path) -> None:
    def child() -> None:
        pass

    with edgelog.open(path) as log, log.topic("topic") as topic, topic.reader() as reader:
        topic.append(b"1", durability="buffered")
        child_id = os.fork()
        if child_id == 0:
            code = 1
            try:
                for thing in (reader, topic, log):
                    thing.__exit__(None, None, None)
                code = 0
            finally:
                os._exit(code)
        assert os.waitpid(child_id, 0)[1] == 0
        topic.append(b"2")
    with edgelog.open(path) as log:
        assert log.topic("topic").stats().records == 2


def test_fork_while_another_thread_is_waiting(topic: edgelog.Topic, background: Any) -> None:
    reader = topic.reader()
    waiting = background(lambda: reader.read(timeout=None))
    while True:
        try:
            reader.gaps()
        except edgelog.MisuseError:
            break

    def child() -> None:
        # The thread that uses the reader does not exist here: no deadlock, and the right answer.
        for call in (reader.read, reader.gaps, reader.wake, reader.cancel):
            with pytest.raises(edgelog.ForkedError):
                call()
        with pytest.raises(edgelog.ForkedError):
            reader.close()

    in_child(child)
    topic.append(b"x")
    assert len(waiting.answer()) == 1


def test_a_child_may_open_the_log_itself(path: Path) -> None:
    log = edgelog.open(path)
    log.topic("topic").append(b"1")
    log.close()

    def child() -> None:
        with edgelog.open(path) as log:
            log.topic("topic").append(b"2")

    in_child(child)
    with edgelog.open(path) as log:
        assert [record.value for record in log.topic("topic").reader()] == [b"1", b"2"]


def test_garbage_and_exit_in_a_child(script: Any, path: Path) -> None:
    done = script(
        """
        import gc, os, sys, edgelog
        log = edgelog.open(sys.argv[1])
        topic = log.topic("topic")
        reader = topic.reader()
        topic.append(b"1", durability="buffered")
        child = os.fork()
        if child == 0:
            del reader, topic, log
            gc.collect()
            sys.exit(0)
        assert os.waitpid(child, 0)[1] == 0
        topic.append(b"2")
        log.close()
        """,
        path,
        flags=["-W", "ignore::DeprecationWarning"],
    )
    assert (done.returncode, done.stderr) == (0, "")
    with edgelog.open(path) as log:
        assert log.topic("topic").stats().records == 2


def read_values(path: str) -> "list[bytes | None]":
    with edgelog.open(path, mode="read_only") as log:
        return [record.value for record in log.topic("topic", create=False).reader()]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_multiprocessing_reads_beside_the_writer(path: Path, method: str) -> None:
    with edgelog.open(path) as log:
        topic = log.topic("topic")
        topic.append_batch([b"1", b"2", b"3"])
        with multiprocessing.get_context(method).Pool(2) as pool:
            answers = pool.map(read_values, [str(path)] * 4)
            pool.close()
            pool.join()
        assert answers == [[b"1", b"2", b"3"]] * 4
        topic.append(b"4")
        assert topic.stats().records == 4


def fail(path: str) -> None:
    with edgelog.open(path, create=False):
        pass


def test_exceptions_cross_processes(path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        with pytest.raises(edgelog.NotFoundError) as caught:
            pool.apply(fail, [str(path)])
        pool.close()
        pool.join()
    assert caught.value.code == "NOT_FOUND"


def test_a_log_that_another_process_holds(path: Path) -> None:
    source = (
        "import sys, edgelog\n"
        "log = edgelog.open(sys.argv[1], mode='exclusive')\n"
        "print('open', flush=True)\n"
        "sys.stdin.read()\n"
        "log.close()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", source, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "open\n"
        with pytest.raises(edgelog.LockedError) as caught:
            edgelog.open(path, mode="exclusive")
        assert caught.value.process_id == other.pid
        assert isinstance(caught.value, BlockingIOError)
        with pytest.raises(edgelog.LockedError):
            edgelog.open(path, mode="exclusive", lock_timeout=0.1)
        other.communicate("")
    with edgelog.open(path, mode="exclusive", lock_timeout=5.0) as log:
        assert log.topics() == []
