"""Runs the comparisons of ci/bench and prints their figures, one JSON object a line.

usage: bench.py [--quick] NAME...     as ci/bench, which builds the workers first
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from workers import (
    BUSY,
    Program,
    Side,
    Worker,
    WorkerError,
    compare,
    figure,
    median,
    note,
    together,
)

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


COMPACT = Program("edgelog", (str(BUILT / "bin" / "compact"),))
COMPACT_KEYS = 1_000


def files_bytes(directory: Path) -> int:
    """What the files below a directory take; those that go meanwhile take nothing."""
    total = 0
    for path, _, names in os.walk(directory):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                total += (Path(path) / name).stat().st_size
    return total


def watched(worker: Worker, records: int, work: str, directory: Path) -> tuple[list[float], int]:
    """What a worker answers, and the most that its files took meanwhile, as far as it was seen."""
    peak = 0
    worker.start(work, records, 100)
    with ThreadPoolExecutor(1) as pool:
        answers = pool.submit(worker.answers)
        while not answers.done():
            peak = max(peak, files_bytes(directory))
            time.sleep(0.001)
    return answers.result(), peak


def faster_streambed(directory: Path, work: str) -> Program:
    """Its faster runtime for this work, found out with some of the records."""
    took = {}
    for program in (streambed("current"), streambed("multi")):
        with Worker(program, directory) as worker:
            took[program] = worker.do(work, 20_000, 100)
    note(f"{work}: {took}")
    return min(took, key=lambda program: took[program])


class Compacted:
    """Rounds in which both sides append and compact; each figure is the median over the rounds.

    edgelog twice: with its defaults (segments of 16 MiB, and as much has to be sealed before a
    compaction is due), because that is what somebody gets who only sets a rule, as here; and with
    segments of 64 KiB, as on flash, which is what streambed-logged compacts by.
    """

    def __init__(self, setting: Setting, work: str) -> None:
        self.work = work
        # More than a segment of ours.
        self.records = max(setting.records, 300_000)
        self.theirs = faster_streambed(setting.directory, work)
        self.rounds: dict[str, list[dict[str, float]]] = {"": [], "flash-": []}
        with (
            Worker(COMPACT, setting.directory) as us,
            Worker(self.theirs, setting.directory) as them,
        ):
            # What their appends write by themselves.
            them.start("plain", self.records, 100)
            self.plain = them.answers()[2]
            for _ in range(setting.rounds(3)):
                self.round(us, them, setting.directory)

    def round(self, us: Worker, them: Worker, directory: Path) -> None:
        answers = {
            kind: watched(us, self.records, kind + self.work, directory) for kind in self.rounds
        }
        them.start(self.work, self.records, 100)
        their_answers = them.answers()
        their_rewritten = their_answers[2] - self.plain
        clock = 1 if BUSY else 0
        for kind, ((*took, written, rewritten, segment_bytes), peak) in answers.items():
            # Two times what lives and what may wait, and two segments: the one that is being
            # written, and the one that compaction writes.
            live = written / self.records * COMPACT_KEYS
            bound = 2 * (live + segment_bytes) + 2 * segment_bytes
            self.rounds[kind].append(
                {
                    "time": their_answers[clock] / took[clock],
                    "rewritten": rewritten / their_rewritten,
                    "disk": peak / bound,
                }
            )
        note(f"{self.work}: {answers}, they {their_answers}, of it rewritten {their_rewritten}")

    def figures(self) -> Figures:
        for kind, rounds in self.rounds.items():
            name = f"compaction/{kind}{self.work}"
            their = f"{self.theirs.name}, key-based retention"
            times = median([one["time"] for one in rounds])
            yield figure(f"{name}-time", times, "times", 20.0, their)
            part = median([one["rewritten"] for one in rounds])
            against = f"bytes that {their} writes beyond its appends"
            yield figure(f"{name}-rewritten", part, "times", 0.25, against, at_most=True)
            peak = max(one["disk"] for one in rounds)
            against = "2 x (live data + threshold) + 2 segments; value: the most on disk"
            yield figure(f"{name}-disk", peak, "times", 1.0, against, at_most=True)


def rate_beside(setting: Setting, kind: str) -> float:
    """How many times as fast appends are with a compaction beside them as without a rule."""
    ratios = []
    with Worker(COMPACT, setting.directory) as worker:
        for number in range(setting.rounds(9) + 1):
            seconds = {}
            for work in ("plain", "beside") if number % 2 else ("beside", "plain"):
                worker.start(kind + work, max(setting.records, 500_000), 100)
                # The time that passed, always: the compaction computes in the same process.
                seconds[work] = worker.answers()[0]
            note(f"{kind}append rate: {seconds}")
            if number:
                ratios.append(seconds["plain"] / seconds["beside"])
    return median(ratios)


def heap_bytes(directory: Path, keys: int) -> float:
    """What a compaction takes at most, by tests/gateway/memory.c on this machine."""
    path = directory / "memory"
    for what in ("make", "compact"):
        command = [str(BUILT / "bin" / "memory"), f"{what}-{keys}", str(path)]
        answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    shutil.rmtree(path)
    return float(answer.stdout.split()[1])


def compaction(setting: Setting) -> Figures:
    for work in ("rotation", "zipf"):
        yield from Compacted(setting, work).figures()
    for kind in ("", "flash-"):
        value = rate_beside(setting, kind)
        against = "the same appends without a rule"
        yield figure(f"compaction/{kind}append-rate", value, "times", 0.5, against)
    for keys in (1_000, 20_000):
        against = f"heap above idle, 10 MB with {keys} keys, compaction_keys_max 1000"
        value = heap_bytes(setting.directory, keys)
        yield figure(f"compaction/memory-{keys}", value, "bytes", 1 << 20, against, at_most=True)
    with Worker(COMPACT, setting.directory) as worker:
        for keep in (1, 10, 100):
            worker.start(f"day-{keep}", setting.records // 2, 100)
            _, _, payload, written, rewritten = worker.answers()
            value = (written + rewritten) / payload
            against = f"keys and values of a day's telemetry, keep_last({keep}), 10 MB of flash"
            yield figure(f"compaction/day-{keep}", value, "times", 3.0, against, at_most=True)


GROUPS = Program("edgelog", (str(BUILT / "bin" / "groups"),))
REDIS = Program("Redis 7", (str(BUILT / "bin" / "redis"),))


def median_of(worker: Worker, work: str, records: int, rounds: int) -> float:
    """The median of what a work answers."""
    answers = [worker.do(work, records, 100) for _ in range(rounds)]
    note(f"{work}: {answers}")
    return median(answers)


def groups(setting: Setting) -> Figures:
    n = setting.records
    ours = Side(GROUPS, "consume", n, fill="fill")
    reader = Side(GROUPS, "read", n, fill="fill")
    against = "a plain reader; read and acknowledged in batches of 100 at written"
    yield setting.ratio("groups/read-ack", ours, reader, 0.333, against, rounds=9)
    theirs = Side(REDIS, "consume", n // 5, fill="fill")
    against = "Redis 7, XREADGROUP and XACK with the same batches, pipelined, no persistence"
    yield setting.ratio("groups/read-ack-redis", ours, theirs, 20.0, against)
    ordered = Side(GROUPS, "consume-ordered", n, fill="fill-8")
    plain = Side(GROUPS, "consume", n, fill="fill-8")
    against = "the same in a group that is not ordered; 8 partitions, 1 consumer, batches of 100"
    yield setting.ratio("groups/ordered", ordered, plain, 0.8, against, rounds=9)

    with Worker(GROUPS, setting.directory) as worker:
        worker.do("fill", n, 100)
        worker.start("consume", n, 100)
        against = "journal for each record delivered and acknowledged, batches of 100"
        value = worker.answers()[2] / n
        yield figure("groups/journal", value, "bytes", 24.0, against, at_most=True)
        for name, work, records, against in [
            ("batches", "memory-batches", n, "in batches of 100"),
            # Half of them are acknowledged.
            ("single", "memory-single", 2 * n, "none beside another"),
        ]:
            worker.do("fill", records, 100)
            value = worker.do(work, records, 100) / 100
            against = f"heap for each of {n} pending records, {against}"
            yield figure(f"groups/memory-{name}", value, "bytes", 64.0, against, at_most=True)

        took: dict[str, list[float]] = {}
        works = ("claim", "owner", "idle")
        for records in (1_000, n):
            worker.do("fill", records, 100)
            for work in works:
                value = median_of(worker, work, records, setting.rounds(5))
                took.setdefault(work, []).append(value)
        for work, (few, many) in took.items():
            against = f"100 of 1000 pending, which take {few / 1000:.1f} us; value: of {n}"
            yield figure(f"groups/{work}", many / few, "times", 3.0, against, at_most=True)


PARTS: dict[str, Callable[[Setting], Figures]] = {
    "log": log,
    "python": python,
    "node": node,
    "open": open_,
    "memory": memory,
    "processes": processes,
    "compaction": compaction,
    "groups": groups,
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
