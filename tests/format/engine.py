"""The engine's side: the program `dump`, kept running."""

from __future__ import annotations

import json
import subprocess
import threading
from pathlib import Path
from typing import Any

Line = dict[str, Any]
# Nothing here takes a second; an engine that loops must not keep the test for ever.
ANSWER_SECONDS_MAX = 120


class EngineError(Exception):
    """The program died instead of answering."""


class Engine:
    def __init__(self, program: Path) -> None:
        self.program = program
        self.process = self.start()

    def start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [self.program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
        )

    def ask(self, *order: str | Path) -> list[Line]:
        """Gives an order and waits for the whole answer."""
        watchdog = threading.Timer(ANSWER_SECONDS_MAX, self.process.kill)
        watchdog.start()
        try:
            return self.answer(order)
        finally:
            watchdog.cancel()

    def answer(self, order: tuple[str | Path, ...]) -> list[Line]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("\t".join(map(str, order)) + "\n")
        self.process.stdin.flush()
        answer: list[Line] = []
        for text in self.process.stdout:
            line: Line = json.loads(text)
            if line["type"] == "end":
                return answer
            answer.append(line)
        code = self.process.wait()
        self.process = self.start()
        if code != 0:
            raise EngineError(f"the engine ended with {code} at {order}")
        return answer

    def write(self, case: str, directory: Path) -> None:
        """Makes a log; a case may end in the death of the process, which is no failure."""
        for line in self.ask("write", case, directory):
            raise EngineError(f"write {case}: {line}")

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()
