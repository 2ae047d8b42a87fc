"""Runs the comparisons of ci/bench and prints their figures, one JSON object a line.

usage: bench.py [--quick] NAME...     as ci/bench, which builds the workers first
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from workers import Program, Side, Worker, WorkerError, compare, figure, median, note, together

ROOT = Path(__file__).resolve().parent.parent.parent
BUILT = Path(os.environ.get("BENCH_BUILT", ROOT / "target" / "bench"))
HERE = Path(__file__).resolve().parent

Figures = Iterator[dict[str, Any]]

LOG = Program("edgelog", (str(BUILT / "bin" / "log"),))
SQLITE = Program("SQLite", (str(BUILT / "bin" / "sqlite"),))
PYTHON = Program("Python", (sys.executable, str(HERE / "python" / "packages.py")))
NODE = Program(
    "Node",
    ("node", str(HERE / "node" / "packages.mjs")),
    (str(BUILT / "node-package"), str(BUILT / "node")),
)


def streambed(runtime: str) -> Program:
    command = (str(BUILT / "release" / "streambed-worker"),)
    return Program(f"streambed-logged 0.13, {runtime}-thread runtime", command, (runtime,))


class Setting:
    """How much is done for a figure."""

    def __init__(self, directory: Path, quick: bool) -> None:
        self.directory = directory
        self.quick = quick
        self.records = 100_000 if quick else 1_000_000

    def rounds(self, count: int) -> int:
        return 3 if self.quick else count

    def ratio(
        self,
        name: str,
        ours: Side,
        theirs: Side,
        target: float | None,
        against: str,
        value_bytes: int = 100,
        rounds: int = 5,
    ) -> dict[str, Any]:
        """A figure: how many times as many records a second we do as they do."""
        note(name)
        ratios = compare(self.directory, ours, theirs, value_bytes, self.rounds(rounds))
        return figure(name, median(ratios), "times", target, against)


def log(setting: Setting) -> Figures:
    n = setting.records
    ours = {
        "append": Side(LOG, "append", n),
        "append-batch": Side(LOG, "append-batch", n),
        "read": Side(LOG, "read", n, fill="fill"),
    }
    raw_append = Side(LOG, "raw-append", n)
    raw_read = Side(LOG, "raw-read", n, fill="raw-fill")
    for name, theirs, target in [
        ("append", raw_append, 0.75),
        ("append-batch", raw_append, 0.60),
        ("read", raw_read, 0.60),
    ]:
        yield setting.ratio(f"log/{name}", ours[name], theirs, target, "raw", rounds=15)

    for value_bytes, target in [(100, 10.0), (4, 30.0)]:
        for work, fill in [("append", ""), ("read", "fill")]:
            # Its faster runtime counts: the one that leaves us less.
            yield min(
                (
                    setting.ratio(
                        f"log/{work}-{value_bytes}-bytes-streambed",
                        ours[work],
                        Side(program, work, n, fill),
                        target,
                        program.name,
                        value_bytes,
                    )
                    for program in (streambed("current"), streambed("multi"))
                ),
                key=lambda one: one["value"],
            )

    yield setting.ratio(
        "log/append-batch-sqlite",
        ours["append-batch"],
        Side(SQLITE, "append-batch", n),
        None,
        "SQLite in C, WAL, a prepared insert, one transaction of 64",
    )


def python(setting: Setting) -> Figures:
    def side(work: str, records: int = setting.records) -> Side:
        return Side(PYTHON, work, records)

    # Until it commits, a transaction is in this process alone: as what is buffered.
    lmdb = "lmdb puts inside one transaction"
    for name, theirs, target, against in [
        ("buffered", "lmdb", 1.0, lmdb),
        ("written", "lmdb", None, lmdb),
        ("batch-buffered", "lmdb", 3.0, lmdb),
        ("batch-written", "lmdb", None, lmdb),
        ("buffered", "lmdb-append", None, lmdb + ", told that keys rise"),
        ("batch-buffered", "lmdb-putmulti", None, "lmdb putmulti inside one transaction"),
        ("buffered", "sqlite", None, "sqlite3 inserts in one transaction, WAL"),
    ]:
        yield setting.ratio(
            f"python/{name}-{theirs}", side(f"edgelog-{name}"), side(theirs), target, against
        )
    yield setting.ratio(
        "python/written-persist-queue",
        side("edgelog-written"),
        side("persist-queue", 1_000),
        None,
        "persist-queue puts into a queue of files",
        rounds=3,
    )


def node(setting: Setting) -> Figures:
    sqlite = "better-sqlite3 12 inserts in one transaction"
    level = "classic-level batches of 64"
    for name, theirs, target, against in [
        ("buffered", "better-sqlite3", 1.0, sqlite),
        ("written", "better-sqlite3", None, sqlite),
        ("batch-buffered", "better-sqlite3", 3.0, sqlite),
        ("batch-written", "better-sqlite3", None, sqlite),
        ("batch-written", "classic-level", None, level),
        ("batch-promise", "classic-level", None, level),
    ]:
        yield setting.ratio(
            f"node/{name}-{theirs}",
            Side(NODE, f"edgelog-{name}", setting.records),
            Side(NODE, theirs, setting.records),
            target,
            against,
        )


# A record of 100 bytes with its key takes about this much in a file.
RECORD_BYTES = 112


class TwoLogs:
    """A log of 10 MB and one of 1 GB (--quick: of 100 MB)."""

    def __init__(self, setting: Setting) -> None:
        megabytes = 100 if setting.quick else 1_000
        self.name = "100 MB" if setting.quick else "1 GB"
        self.records = {size: size * 1_000_000 // RECORD_BYTES for size in (10, megabytes)}
        self.small, self.large = self.records
        self.directory = {size: setting.directory / f"log-{size}" for size in self.records}

    def __enter__(self) -> TwoLogs:
        for size in self.records:
            self.directory[size].mkdir()
            self.do("fill", size)
        return self

    def __exit__(self, *exception: object) -> None:
        for directory in self.directory.values():
            shutil.rmtree(directory)

    def do(self, work: str, size: int, kill: bool = False) -> float:
        """What a process answers that does only this."""
        with Worker(LOG, self.directory[size]) as worker:
            answer = worker.do(work, self.records[size], 100)
            if kill:
                worker.kill()
            return answer

    def ratio(self, work: str, rounds: int, kill: bool = False) -> float:
        """The answer for the large log as a multiple of that for the small one."""
        ratios = []
        for _ in range(rounds):
            answers = {size: self.do(work, size, kill) for size in (self.small, self.large)}
            note(f"{work}: {answers}")
            ratios.append(answers[self.large] / answers[self.small])
        return median(ratios)


def open_(setting: Setting) -> Figures:
    with TwoLogs(setting) as logs:
        against = f"a log of 10 MB; value: a log of {logs.name}"
        for name, work in [("closed", "open"), ("killed", "open-and-stay")]:
            if name == "killed":
                for size in logs.records:
                    logs.do("fill-and-stay", size, kill=True)
            value = logs.ratio(work, setting.rounds(15), kill=name == "killed")
            yield figure(f"open/{name}", value, "times", 3.0, against, at_most=True)


def memory(setting: Setting) -> Figures:
    with TwoLogs(setting) as logs:
        against = f"a log of 10 MB; value: a log of {logs.name}"
        for work in ("open", "read"):
            value = logs.ratio(f"{work}-rss", setting.rounds(5))
            yield figure(f"memory/{work}", value, "times", 1.05, against, at_most=True)
        for work in ("open", "read"):
            kib = [logs.do(f"{work}-heap", size) for size in (logs.small, logs.large)]
            more = f"private memory, a log of {logs.name} less a log of 10 MB"
            yield figure(f"memory/{work}-growth", kib[1] - kib[0], "KiB", None, more)


class Peer:
    """A process of tests/processes, told what to do. See its peer.py."""

    def __init__(self, *command: str) -> None:
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "EDGELOG_NODE_HOME": str(BUILT / "node-package")},
        )

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *exception: object) -> None:
        self.process.communicate()

    def start(self, *words: object) -> None:
        assert self.process.stdin
        print(*words, file=self.process.stdin, flush=True)

    def answer(self) -> list[str]:
        assert self.process.stdout
        words = self.process.stdout.readline().split()
        if words[:1] != ["ok"]:
            self.process.kill()
            raise WorkerError(f"a peer answers {' '.join(words)}")
        return words[1:]

    def do(self, *words: object) -> list[str]:
        self.start(*words)
        return self.answer()


PEERS = ROOT / "tests" / "processes"
WAITERS = {
    "c": (str(BUILT / "bin" / "peer"),),
    "python": (sys.executable, str(PEERS / "peer.py")),
    "node": ("node", str(PEERS / "peer.mjs")),
}


def wake_ups_us(directory: Path, waiter: tuple[str, ...], count: int) -> list[float]:
    """From before an append in one process to after the wait in another, sorted."""
    took = []
    path = directory / "wake"
    with Peer(*WAITERS["c"]) as one, Peer(*waiter) as other:
        for peer in (one, other):
            peer.do("open", path, "shared", 0)
        one.do("create", "t", 0)
        other.do("follow", "t")
        for _ in range(count):
            other.start("wait", 10_000)
            # The wait has begun by then.
            time.sleep(0.005)
            before = int(one.do("append", "t", "written", 1, "x" * 100)[1])
            took.append((int(other.answer()[1]) - before) / 1000)
    shutil.rmtree(path)
    return sorted(took)


def processes(setting: Setting) -> Figures:
    n = setting.records
    for work, records, target, fill in [
        ("append-batch", n, 0.70, ""),
        ("append-written", n // 4, 0.50, ""),
        ("append", n, None, ""),
        ("read", n, None, "fill"),
    ]:
        sides = [Side(LOG, f"{mode}{work}", records, fill) for mode in ("shared-", "")]
        yield setting.ratio(
            f"processes/shared-{work}", sides[0], sides[1], target, "the same, opened exclusively"
        )
    alone = "one process alone"
    joined, other = "joined-append-batch", "other-append-batch"
    for name, first, second, target, against in [
        # What the machine has to give, now.
        ("two-compute", "compute", "compute", None, alone),
        ("two-append-batch-one-topic", joined, joined, 0.80, alone),
        ("two-append-batch-two-topics", joined, other, 1.50, alone),
    ]:
        # More records, as the time that passes counts here, whatever else the machine does.
        ratios = together(setting.directory, LOG, first, second, 5 * n, setting.rounds(9))
        yield figure(f"processes/{name}", median(ratios), "times", target, against)
    for language, waiter in WAITERS.items():
        took = wake_ups_us(setting.directory, waiter, 200 if setting.quick else 1_000)
        for name, value in [("median", median(took)), ("p99", took[len(took) * 99 // 100])]:
            against = "from an append in C to the end of a wait in another process"
            yield figure(f"processes/wake-{language}-{name}", value, "us", None, against)


PARTS: dict[str, Callable[[Setting], Figures]] = {
    "log": log,
    "python": python,
    "node": node,
    "open": open_,
    "memory": memory,
    "processes": processes,
}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("names", nargs="+", choices=list(PARTS))
    arguments = parser.parse_args()
    directory = Path(os.environ.get("BENCH_DIR", BUILT / "data")) / f"bench-{os.getpid()}"
    directory.mkdir(parents=True)
    try:
        for name in arguments.names:
            for one in PARTS[name](Setting(directory, arguments.quick)):
                print(json.dumps(one), flush=True)
    except WorkerError as failed:
        print(f"bench: {failed}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
