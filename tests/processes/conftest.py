"""What the tests of several processes share: a process in each language, told what to do."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
# Where tests/processes/run leaves what it builds.
BUILT = Path(os.environ["EDGELOG_PROCESSES_BUILT"])
LANGUAGES = {
    "c": [str(BUILT / "peer")],
    "python": [sys.executable, str(HERE / "peer.py")],
    "node": ["node", str(HERE / "peer.mjs")],
}


class PeerError(Exception):
    def __init__(self, status: str, process_id: int, text: str) -> None:
        super().__init__(f"{status}: {text}")
        self.status = status
        self.process_id = process_id


class Peer:
    """A running process; see peer.py for what it can be told."""

    def __init__(self, language: str) -> None:
        self.language = language
        self.process = subprocess.Popen(
            LANGUAGES[language], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def start(self, *words: object) -> None:
        """Tells it to do something, without waiting for the answer."""
        assert self.process.stdin
        print(*words, file=self.process.stdin, flush=True)

    def answer(self) -> list[str]:
        assert self.process.stdout
        line = self.process.stdout.readline()
        word, *words = line.split() or ["nothing"]
        if word == "error":
            raise PeerError(words[0], int(words[1]), line)
        assert word == "ok", f"{self.language} answers {line!r}"
        return words

    def do(self, *words: object) -> list[str]:
        self.start(*words)
        return self.answer()

    def status(self, *words: object) -> str:
        try:
            self.do(*words)
        except PeerError as error:
            return error.status
        return "OK"

    def open(self, path: Path, mode: str = "shared", busy_ms: int = 5000) -> Peer:
        self.do("open", path, mode, busy_ms)
        return self

    def append(self, topic: str, value: str, durability: str = "written", count: int = 1) -> int:
        return int(self.do("append", topic, durability, count, value)[0])

    def read(self, topic: str) -> list[str]:
        """The values; that their offsets have no holes is looked at here."""
        pairs = [pair.split(":", 1) for pair in self.do("read", topic)]
        offsets = [int(offset) for offset, _ in pairs]
        assert offsets == list(range(offsets[0], offsets[0] + len(offsets))) if offsets else True
        return [value for _, value in pairs]

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A directory for a log, which is not there yet."""
    return tmp_path / "log"


@pytest.fixture
def start() -> Iterator[Callable[[str], Peer]]:
    """Starts processes, and ends them after the test."""
    peers: list[Peer] = []

    def one(language: str) -> Peer:
        peers.append(Peer(language))
        return peers[-1]

    yield one
    for peer in peers:
        peer.end()


@pytest.fixture
def all_three(start: Callable[[str], Peer], path: Path) -> list[Peer]:
    """A process of each language with the log open, and in it the topic "t"."""
    peers = [start(language) for language in LANGUAGES]
    for peer in peers:
        peer.open(path)
    peers[0].do("create", "t", 65536)
    return peers
