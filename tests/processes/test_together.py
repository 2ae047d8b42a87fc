"""C, Python and Node on one log at the same time."""

from __future__ import annotations

import itertools
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import LANGUAGES, Peer, PeerError

PAIRS = list(itertools.product(LANGUAGES, LANGUAGES))


def test_each_reads_what_the_others_wrote(all_three: list[Peer]) -> None:
    wanted: list[str] = []
    for number in range(30):
        writer = all_three[number % 3]
        durability = ("written", "synced", "buffered")[number % 7 % 3]
        count = 1 + number % 4
        value = f"{writer.language}-{number}"
        assert writer.append("t", value, durability, count) == len(wanted)
        wanted += [value] * count
    for peer in all_three:
        peer.do("flush", "t")
    for peer in all_three:
        assert peer.read("t") == wanted
        assert peer.do("verify") == ["0"]


def test_all_append_at_the_same_time(all_three: list[Peer]) -> None:
    rounds = 200
    for number in range(rounds):
        for peer in all_three:
            peer.start("append", "t", "written", 1 + number % 3, f"{peer.language}-{number}")
    given = {}
    for number in range(rounds):
        for peer in all_three:
            first = int(peer.answer()[0])
            for offset in range(first, first + 1 + number % 3):
                given[offset] = f"{peer.language}-{number}"
    assert all_three[0].read("t") == [given[offset] for offset in range(len(given))]


@pytest.mark.parametrize(("writer", "reader"), PAIRS)
def test_an_append_wakes_a_wait(
    start: Callable[[str], Peer], path: Path, writer: str, reader: str
) -> None:
    one, other = start(writer).open(path), start(reader).open(path)
    one.do("create", "t", 65536)
    other.do("follow", "t")
    took_us = []
    for number in range(10):
        other.start("wait", 10_000)
        time.sleep(0.02)
        before = int(one.do("append", "t", "written", 1, f"v{number}")[1])
        value, after = other.answer()
        assert value == f"v{number}"
        took_us.append((int(after) - before) // 1000)
    took_us.sort()
    print(f"\n{writer} wakes {reader}: median {took_us[5]} us, at most {took_us[-1]} us")
    assert took_us[-1] < 1_000_000, took_us


def test_a_wait_ends_at_its_time(all_three: list[Peer]) -> None:
    for peer in all_three:
        peer.do("follow", "t")
        assert peer.do("wait", 50) == ["timeout", "0"]


def test_a_read_only_opener_is_woken_too(start: Callable[[str], Peer], path: Path) -> None:
    for mode in ("shared", "exclusive"):
        for language in LANGUAGES:
            writer = start("c").open(path, mode)
            if "t" not in writer.do("topics"):
                writer.do("create", "t", 65536)
            reader = start(language).open(path, "read_only")
            reader.do("follow", "t")
            reader.start("wait", 10_000)
            time.sleep(0.02)
            before = int(writer.do("append", "t", "written", 1, "v")[1])
            _, after = reader.answer()
            assert int(after) - before < 1_000_000_000
            writer.do("close")


def test_topics_come_and_go(all_three: list[Peer]) -> None:
    for maker, breaker, watcher in itertools.permutations(all_three):
        maker.do("create", "new", 65536)
        assert all(sorted(peer.do("topics")) == ["new", "t"] for peer in all_three)
        watcher.append("new", "x")
        watcher.do("follow", "new")
        watcher.start("wait", 10_000)
        time.sleep(0.01)
        breaker.do("delete", "new")
        with pytest.raises(PeerError) as caught:
            watcher.answer()
        assert caught.value.status == "DELETED"
        for peer in all_three:
            assert peer.do("topics") == ["t"]
            with pytest.raises(PeerError) as caught:
                peer.append("new", "y")
            assert caught.value.status == "NOT_FOUND"


def test_a_topic_that_is_made_again_is_another_one(all_three: list[Peer]) -> None:
    for one, other in itertools.permutations(all_three, 2):
        assert one.append("t", "a") == 0
        assert other.append("t", "b") == 1
        one.do("delete", "t")
        other.do("create", "t", 65536)
        assert one.read("t") == []
        assert one.append("t", "c") == 0
        one.do("delete", "t")
        one.do("create", "t", 65536)


def test_retention_by_one_is_seen_by_all(all_three: list[Peer]) -> None:
    number = 0
    for one, other in itertools.permutations(all_three, 2):
        for _ in range(3):
            one.append("t", "x" * 1000, count=100)
            other.append("t", "y" * 1000, count=100)
            number += 200
        other.do("configure", "t", 1)
        one.do("retain", "t")
        other.do("configure", "t", 0)
        stats = [peer.do("stats", "t") for peer in all_three]
        assert stats[0] == stats[1] == stats[2]
        earliest, following, records, _ = map(int, stats[0])
        assert (earliest > number - 600, following) == (True, number)
        assert records == following - earliest
        assert all(len(peer.read("t")) == records for peer in all_three)


@pytest.mark.parametrize(("holder", "second"), PAIRS)
def test_a_second_opener_is_told_who_at_once(
    start: Callable[[str], Peer], path: Path, holder: str, second: str
) -> None:
    one, other = start(holder), start(second)
    for mode, refused in [
        ("exclusive", "exclusive"),
        ("exclusive", "shared"),
        ("shared", "exclusive"),
    ]:
        one.open(path, mode)
        before = time.monotonic()
        with pytest.raises(PeerError) as caught:
            other.open(path, refused)
        assert time.monotonic() - before < 0.5
        assert caught.value.status == "LOCKED"
        assert caught.value.process_id == one.process.pid
        other.open(path, "read_only")
        other.do("close")
        one.do("close")
        other.open(path, refused)
        other.do("close")


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_buffer_is_given_up_for_another_who_asks(
    start: Callable[[str], Peer], path: Path, language: str
) -> None:
    keeper, other = start(language).open(path), start("c").open(path)
    keeper.do("create", "t", 65536)
    assert keeper.append("t", "kept", "buffered") == 0
    before = time.monotonic()
    assert other.append("t", "asked") == 1
    assert time.monotonic() - before < 1.0
    assert other.read("t") == ["kept", "asked"]


@pytest.mark.parametrize(("stopped", "other"), PAIRS)
def test_busy_while_the_keeper_is_stopped(
    start: Callable[[str], Peer], path: Path, stopped: str, other: str
) -> None:
    keeper, writer = start(stopped).open(path), start(other).open(path, busy_ms=100)
    keeper.do("create", "t", 65536)
    writer.append("t", "before")
    # The record leaves the buffer after linger_ms, so the process has to be stopped before.
    for _ in range(20):
        keeper.append("t", "kept", "buffered")
        keeper.process.send_signal(signal.SIGSTOP)
        before = time.monotonic()
        status = writer.status("append", "t", "written", 1, "early")
        took_s = time.monotonic() - before
        keeper.process.send_signal(signal.SIGCONT)
        if status == "BUSY":
            assert 0.08 < took_s < 1.0
            break
        assert status == "OK"
    else:
        pytest.fail("the buffer was never kept")
    offset = writer.append("t", "after")
    assert writer.read("t")[offset - 1 :] == ["kept", "after"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_dead_process_stops_nobody(
    start: Callable[[str], Peer], path: Path, language: str
) -> None:
    other = start("c").open(path)
    other.do("create", "t", 65536)
    for _ in range(3):
        keeper = start(language).open(path)
        keeper.append("t", "written")
        keeper.append("t", "kept", "buffered")
        keeper.process.kill()
        before = time.monotonic()
        other.append("t", "after")
        assert time.monotonic() - before < 1.0
    assert other.read("t")[-2:] in (["written", "after"], ["kept", "after"])
    assert other.do("verify") == ["0"]
