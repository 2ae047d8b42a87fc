"""What actors in Python share: their words, their dice, their journal, and calls that are timed.
See README.md.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Callable
from typing import Any, TypeVar

import edgelog

T = TypeVar("T")

# Calls that take longer than this are told; the checks say what is too long.
TOLD_NS = 300_000_000


class Actor:
    def __init__(self) -> None:
        self.path, journal, self.name, self.life, seed = sys.argv[1:]
        self.dice = random.Random(int(seed))
        self.ends = False
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        self._journal = os.open(journal, flags, 0o666)
        signal.signal(signal.SIGTERM, self._end_soon)
        self.journal("start", os.getpid())

    def _end_soon(self, *_signal: object) -> None:
        self.ends = True

    def journal(self, *words: object) -> None:
        """One line into the journal, in one write."""
        line = " ".join(map(str, words)).encode() + b"\n"
        assert os.write(self._journal, line) == len(line)

    def timed(self, name: str, call: Callable[[], T], *fine: str) -> T | None:
        """What a call answers; None if it failed."""
        return self._call(name, call, fine)[0]

    def done(self, name: str, call: Callable[[], None], *fine: str) -> bool:
        """Whether a call succeeded."""
        return self._call(name, call, fine)[1]

    def _call(
        self, name: str, call: Callable[[], T], fine: tuple[str, ...]
    ) -> tuple[T | None, bool]:
        """Does a call, and tells if it failed or was slow. `fine` are no errors."""
        start = time.monotonic_ns()
        answer = None
        code = "OK"
        try:
            answer = call()
        except edgelog.Error as error:
            code = error.code
            if code != "BUSY" and code not in fine:
                self.journal("error", name, start, time.monotonic_ns(), code, error)
        end = time.monotonic_ns()
        if code == "BUSY":
            self.journal("busy", name, start, end)
        elif end - start > TOLD_NS:
            self.journal("slow", name, start, end, code)
        return answer, code == "OK"


class TopicsActor(Actor):
    """One that works on topics which it keeps open, and on a reader that follows one of them."""

    # What the topics are made with, by their names.
    kinds: dict[str, dict[str, Any]]
    # So often of once more its log has a thread.
    in_background: int
    log: edgelog.Log | None = None
    follower: edgelog.Reader | None = None
    topics: dict[str, edgelog.Topic]

    def open(self) -> bool:
        maintenance: Any = self.dice.choice(["background"] * self.in_background + ["manual"])
        options = {"maintenance": maintenance, "busy_timeout": self.dice.choice([1.0, 0])}
        self.log = log = self.timed("open", lambda: edgelog.open(self.path, **options))
        self.topics = {}
        for name, kind in self.kinds.items():
            while log and not self.ends and name not in self.topics:
                topic = self.timed("topic", lambda: log.topic(name, **kind))  # noqa: B023
                if topic:
                    self.topics[name] = topic
        if log and len(self.topics) < len(self.kinds):
            log.close()
            self.log = None
        return self.log is not None

    def close(self) -> None:
        assert self.log
        if self.follower:
            self.follower.close()
        self.follower = None
        done = [self.done("topic-close", topic.close) for topic in self.topics.values()]
        done.append(self.done("close", self.log.close))
        self.log = None
        self.journal("closed" if all(done) else "closed-badly")
