"""What the tests of the Python package share."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import edgelog
import pytest


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A directory for a log, which is not there yet."""
    return tmp_path / "log"


@pytest.fixture
def log(path: Path) -> Iterator[edgelog.Log]:
    """An open log."""
    with edgelog.open(path) as log:
        yield log


@pytest.fixture
def topic(log: edgelog.Log) -> edgelog.Topic:
    """An empty topic with one partition."""
    return log.topic("topic")


@pytest.fixture
def script(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a Python program in a process of its own."""

    def run(source: str, *arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
        options.setdefault("timeout", 60)
        flags = options.pop("flags", [])
        return subprocess.run(
            [sys.executable, *flags, "-c", textwrap.dedent(source), *map(str, arguments)],
            capture_output=True,
            check=False,
            text=True,
            cwd=tmp_path,
            **options,
        )

    return run


class Background(threading.Thread):
    """Runs a function in a thread and hands out what it answers or raises."""

    def __init__(self, function: Callable[[], Any]) -> None:
        super().__init__(daemon=True)
        self._function = function
        self._answer: Any = None
        self._error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self._answer = self._function()
        except BaseException as error:
            self._error = error

    def answer(self, timeout: float = 30.0) -> Any:
        self.join(timeout)
        assert not self.is_alive(), "the thread is still at it"
        if self._error is not None:
            raise self._error
        return self._answer


@pytest.fixture
def background() -> type[Background]:
    """Starts functions in threads."""
    return Background
