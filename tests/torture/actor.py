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
from typing import TypeVar

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
