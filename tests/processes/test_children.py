"""Children of all kinds: forked, spawned, workers of Node, and two openers in one process."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import edgelog
import pytest
from conftest import Peer, PeerError

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")

CHILDREN = 3
RECORDS = 40


def append_many(path: str, name: str) -> None:
    """The life of a child: a log of its own."""
    with edgelog.open(path) as log:
        topic = log.topic("t")
        for number in range(RECORDS):
            topic.append(f"{name}-{number}", durability=("buffered", "written")[number % 2])


def values(log: edgelog.Log) -> list[str]:
    return [(record.value or b"").decode() for record in log.topic("t").reader()]


def expect_all(found: list[str], names: list[str]) -> None:
    """Each one's records are there once, in their order."""
    assert len(found) == len(names) * RECORDS
    for name in names:
        own = [value for value in found if value.startswith(name + "-")]
        assert own == [f"{name}-{number}" for number in range(RECORDS)]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_children_of_multiprocessing_append_beside_their_parent(path: Path, method: Any) -> None:
    context: Any = multiprocessing.get_context(method)
    names = [f"child{number}" for number in range(CHILDREN)]
    with edgelog.open(path) as log:
        topic = log.topic("t")
        children = [context.Process(target=append_many, args=(str(path), n)) for n in names]
        for child in children:
            child.start()
        for number in range(RECORDS):
            topic.append(f"parent-{number}")
        for child in children:
            child.join(60)
            assert child.exitcode == 0
        expect_all(values(log), [*names, "parent"])
        assert not log.verify()


def test_a_fork_in_the_middle_harms_nobody(path: Path, start: Callable[[str], Peer]) -> None:
    other = start("c").open(path)
    with edgelog.open(path) as log:
        topic = log.topic("t")
        topic.append("1", durability="buffered")
        child = os.fork()
        if child == 0:
            code = 1
            try:
                topic.append("child")
            except edgelog.ForkedError:
                code = 0
            # The usual end, which closes what is open.
            edgelog._edgelog._close_all()
            os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        # The partition is still the parent's, and given up when another asks.
        assert topic.append("2", durability="buffered").offset == 1
        assert other.append("t", "3") == 2
        assert values(log) == ["1", "2", "3"]


def test_an_exclusive_lock_stays_with_the_parent_of_a_fork(
    path: Path, start: Callable[[str], Peer]
) -> None:
    with edgelog.open(path, mode="exclusive") as log:
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
        with pytest.raises(PeerError) as caught:
            start("c").open(path)
        assert (caught.value.status, caught.value.process_id) == ("LOCKED", os.getpid())
        log.topic("t").append("1")


NODE_CHILDREN = """
import { fork } from 'node:child_process';
import { Worker, isMainThread, workerData } from 'node:worker_threads';
import { createRequire } from 'node:module';
import { join } from 'node:path';
const { open } = createRequire(join(process.env.EDGELOG_NODE_HOME, 'x.cjs'))('edgelog');

const [path, count, records, child] = process.argv.slice(2);
const name = child ?? workerData ?? 'main';
const log = await open(path);
const topic = await log.topic('t');
const append = async () => {
  for (let n = 0; n < records; n++) {
    await topic.append(`${name}-${n}`, { durability: ['buffered', 'written'][n % 2] });
  }
};
const ended = (one) => new Promise((resolve, reject) => {
  one.once('error', reject);
  one.once('exit', (code) => (code ? reject(new Error(`${code}`)) : resolve()));
});
if (name === 'main') {
  const all = [append()];
  const argv = [path, count, records];
  for (let n = 0; n < count; n++) {
    all.push(ended(fork(process.argv[1], [...argv, `process${n}`])));
    all.push(ended(new Worker(process.argv[1], { argv, workerData: `worker${n}` })));
  }
  await Promise.all(all);
} else {
  await append();
}
await log.close();
"""


def test_processes_and_workers_of_node(path: Path, tmp_path: Path) -> None:
    program = tmp_path / "children.mjs"
    program.write_text(NODE_CHILDREN)
    with edgelog.open(path) as log:
        log.topic("t")
        subprocess.run(["node", program, path, str(CHILDREN), str(RECORDS)], check=True, timeout=60)
        names = [f"{kind}{number}" for kind in ("process", "worker") for number in range(CHILDREN)]
        expect_all(values(log), [*names, "main"])


def test_a_started_program_keeps_no_lock(path: Path) -> None:
    with edgelog.open(path, mode="exclusive"):
        program = subprocess.Popen(["cat"], stdin=subprocess.PIPE, close_fds=False)
    with program:
        edgelog.open(path, mode="exclusive").close()
        program.communicate()


def test_one_process_opens_a_log_twice(path: Path) -> None:
    with edgelog.open(path) as one, edgelog.open(path) as other:
        topics = [one.topic("t"), other.topic("t")]
        for number in range(60):
            durability: Any = ("buffered", "written", "synced")[number % 3]
            assert topics[number % 2].append(str(number), durability=durability).offset == number
        assert values(one) == values(other) == [str(number) for number in range(60)]
        with pytest.raises(edgelog.LockedError) as caught:
            edgelog.open(path, mode="exclusive")
        assert caught.value.process_id == os.getpid()


class Library:
    """libedgelog.so, loaded beside the package's own copy of the engine."""

    def __init__(self) -> None:
        self.calls = ctypes.CDLL(os.environ["EDGELOG_PREFIX"] + "/lib/libedgelog.so")

    def open(self, path: Path, mode: int) -> tuple[int, ctypes.c_void_p]:
        options = (ctypes.c_uint32 * 10)(40, mode)
        log = ctypes.c_void_p()
        name = os.fsencode(path)
        return self.calls.edgelog_open(name, options, ctypes.byref(log), None), log

    def close(self, log: ctypes.c_void_p) -> None:
        assert self.calls.edgelog_close(log, None) == 0

    def topic(self, log: ctypes.c_void_p) -> ctypes.c_void_p:
        topic = ctypes.c_void_p()
        size = ctypes.c_uint32(1)
        answer = self.calls.edgelog_topic_open(log, b"t", size, None, ctypes.byref(topic), None)
        assert answer == 0
        return topic

    def append(self, topic: ctypes.c_void_p, value: bytes, durability: int) -> int:
        record = ctypes.create_string_buffer(80)
        held = ctypes.create_string_buffer(value)
        pairs = [(0, 80, 4), (4, 2, 4), (48, ctypes.addressof(held), 8), (56, len(value), 4)]
        for at, number, size in pairs:
            field = number.to_bytes(size, "little")
            ctypes.memmove(ctypes.addressof(record) + at, field, size)
        position = (ctypes.c_uint64 * 2)()
        assert self.calls.edgelog_topic_append(topic, record, durability, position, None) == 0
        return position[1]


def test_two_copies_of_the_engine_in_one_process(path: Path) -> None:
    library = Library()
    status, log = library.open(path, 0)
    assert status == 0
    with edgelog.open(path) as own:
        topics = own.topic("t"), library.topic(log)
        for number in range(60):
            if number % 2:
                durability: Any = ("buffered", "written", "synced")[number % 3]
                offset = topics[0].append(str(number), durability=durability).offset
            else:
                offset = library.append(topics[1], str(number).encode(), 1 + number % 3)
            assert offset == number
        assert values(own) == [str(number) for number in range(60)]
        with pytest.raises(edgelog.LockedError):
            edgelog.open(path, mode="exclusive")
    library.close(log)
    with edgelog.open(path, mode="exclusive"):
        assert library.open(path, 0)[0] == -11
        assert library.open(path, 1)[0] == -11
    status, log = library.open(path, 1)
    assert status == 0
    with pytest.raises(edgelog.LockedError) as caught:
        edgelog.open(path)
    assert caught.value.process_id == os.getpid()
    library.close(log)
