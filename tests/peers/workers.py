"""Workers: programs that do work on request and answer with one figure. See README.md."""

from __future__ import annotations

import contextlib
import os
import shutil
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# On a machine that does other things too, the time that a process computed says more than the time
# that passed.
BUSY = bool(os.environ.get("BENCH_BUSY"))


class WorkerError(Exception):
    """A worker did not do its work: there is no figure then, good or bad."""


@dataclass(frozen=True)
class Program:
    """How to start a worker; it is given the directory for its files as the last word."""

    name: str
    command: tuple[str, ...]
    after: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()


class Worker:
    """A running worker. Leaving the context ends it."""

    def __init__(self, program: Program, directory: Path) -> None:
        self.program = program
        self.process = subprocess.Popen(
            [*program.command, str(directory), *program.after],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **dict(program.environment)},
        )

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *exception: object) -> None:
        self.process.communicate()

    def kill(self) -> None:
        """As a crash would: nothing is closed."""
        self.process.kill()

    def do(self, work: str, records: int, value_bytes: int) -> float:
        """The figure that the worker answers."""
        self.start(work, records, value_bytes)
        return self.answer()

    def start(self, work: str, records: int, value_bytes: int) -> None:
        """The same, without waiting for it; answer waits."""
        assert self.process.stdin
        self.told = f"{work} {records} {value_bytes}"
        # One that is gone does not answer, which is told there.
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(self.told + "\n")
            self.process.stdin.flush()

    def answer(self) -> float:
        return self.answers()[1 if BUSY else 0]

    def answers(self) -> list[float]:
        """Nanoseconds that passed, that it computed, and what the work answers beyond that."""
        assert self.process.stdout
        figures = self.process.stdout.readline().split()
        if len(figures) < 2:
            self.process.kill()
            raise WorkerError(f"{self.program.name} did not finish '{self.told}'")
        return [float(figure) for figure in figures]


@dataclass(frozen=True)
class Side:
    """One side of a comparison: who does what, and with how many records."""

    program: Program
    work: str
    records: int
    fill: str = ""

    def prepare(self, workers: Pool, value_bytes: int) -> None:
        """Makes the files that the work needs."""
        if self.fill:
            workers[self.program].do(self.fill, self.records, value_bytes)

    def seconds_per_record(self, workers: Pool, value_bytes: int) -> float:
        answer = workers[self.program].do(self.work, self.records, value_bytes)
        return answer / 1e9 / self.records


class Pool:
    """The workers of one comparison, started when they are first needed."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.workers: dict[Program, Worker] = {}

    def __getitem__(self, program: Program) -> Worker:
        if program not in self.workers:
            self.workers[program] = Worker(program, self.directory)
        return self.workers[program]

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *exception: object) -> None:
        for worker in self.workers.values():
            worker.__exit__(*exception)


def compare(
    directory: Path, ours: Side, theirs: Side, value_bytes: int, rounds: int
) -> list[float]:
    """How many times as many records a second we do as they do, round by round.

    The sides alternate, and who begins alternates too, so that what else the machine does hits
    both. A first round without a figure warms up what is warm in real use.
    """
    ratios = []
    with Pool(directory) as workers:
        for side in (ours, theirs):
            side.prepare(workers, value_bytes)
        for number in range(rounds + 1):
            sides = (ours, theirs) if number % 2 else (theirs, ours)
            took = {side: side.seconds_per_record(workers, value_bytes) for side in sides}
            if number:
                ratios.append(took[theirs] / took[ours])
            note(f"{took[ours] * 1e9:.0f} ns for {theirs.program.name}'s {took[theirs] * 1e9:.0f}")
    return ratios


def together(
    directory: Path, program: Program, first: str, second: str, records: int, rounds: int
) -> list[float]:
    """How many times as much a second two processes do together as one alone, with a shared log,
    round by round. The time that passed counts: what two compute says nothing about what they get
    done.
    """
    path = directory / "log"
    ratios = []
    with Worker(program, directory) as one, Worker(program, directory) as other:
        for number in range(rounds + 1):
            seconds = {}
            for both in (False, True) if number % 2 else (True, False):
                works = {one: first, **({other: second} if both else {})}
                for worker in works:
                    worker.do("join", records, 100)
                start = time.monotonic()
                for worker, work in works.items():
                    worker.start(work, records, 100)
                for worker in works:
                    worker.answer()
                seconds[both] = time.monotonic() - start
                for worker in works:
                    worker.do("leave", records, 100)
                shutil.rmtree(path)
            if number:
                ratios.append(2 * seconds[False] / seconds[True])
            note(f"{second}: {seconds[True]:.3f} s for two, {seconds[False]:.3f} s for one")
    return ratios


def median(values: list[float]) -> float:
    return statistics.median(values)


def note(text: str) -> None:
    """For whoever watches; the figures alone go to standard output."""
    if os.environ.get("BENCH_VERBOSE"):
        print(text, file=sys.stderr, flush=True)


def figure(
    name: str, value: float, unit: str, target: float | None, against: str, at_most: bool = False
) -> dict[str, Any]:
    """One line of output. Without a target it is told, not judged, and always ok."""
    value = round(value, 3)
    ok = target is None or (value <= target if at_most else value >= target)
    if target is not None:
        against += "; at most target" if at_most else "; at least target"
    return {
        "name": name,
        "value": value,
        "unit": unit,
        "target": target,
        "ok": ok,
        "against": against,
    }
