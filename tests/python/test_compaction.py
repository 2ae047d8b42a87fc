"""Compaction: by rules, and decided by the program."""

from __future__ import annotations

import os
import pickle
import threading
from collections import deque
from datetime import timedelta

import edgelog
import pytest
from edgelog import keep_all, keep_for, keep_last, keep_nothing

FILLER = b"f" * 200


def small(log: edgelog.Log, keep: dict[str, edgelog.Keep] | None = None) -> edgelog.Topic:
    """Small segments, of which all goes that may go; nothing is due by itself."""
    return log.topic(
        "topic", segment_bytes=4096, min_garbage_percent=1, compact_trigger_bytes=1 << 40, keep=keep
    )


def seal(topic: edgelog.Topic) -> None:
    for _ in range(40):
        topic.append(FILLER)


def keys(topic: edgelog.Topic) -> list[bytes]:
    return [record.key for record in topic.reader() if record.key is not None]


def test_three_kinds_of_records_in_one_topic(log: edgelog.Log) -> None:
    topic = small(
        log,
        {
            "name/": keep_all(),
            "battery/": keep_last(10),
            "meter/": keep_for(timedelta(days=366)),
            "noise/": keep_nothing(),
        },
    )
    for _ in range(100):
        for key in ("name/a", "battery/a", "meter/a", "noise/a"):
            topic.append(b"value", key=key)
    seal(topic)
    report = topic.compact()
    found = keys(topic)
    assert [found.count(key) for key in (b"name/a", b"battery/a", b"meter/a")] == [100, 10, 100]
    assert b"noise/a" not in found
    assert report.records_removed == 190
    assert report.passes == report.keys_peak == 1
    assert report.bytes_freed > 0
    stats = topic.stats()
    assert stats.compactions == 1
    assert stats.compacted_records == 190
    assert stats.rewritten_bytes == report.bytes_written


def test_rules_are_read_back(log: edgelog.Log) -> None:
    rules = {"": keep_last(1), "a/": keep_for(1.5), b"\xff\0": keep_nothing(), 7: keep_all()}
    topic = log.topic(
        "t",
        keep=rules,  # type: ignore[arg-type]
        tombstone_ms=5,
        compaction_keys_max=6,
    )
    wanted = {
        b"": keep_last(1),
        b"a/": keep_for(1.5),
        b"\xff\0": keep_nothing(),
        (7).to_bytes(8, "big"): keep_all(),
    }
    assert topic.options.keep == wanted
    assert topic.options.tombstone_ms == 5
    assert topic.options.compaction_keys_max == 6
    assert topic.options.min_garbage_percent == 50
    assert topic.options.compact_trigger_bytes == topic.options.segment_bytes
    assert "keep_last(1)" in repr(topic.options)
    topic.configure(max_records=9)
    assert topic.options.keep == wanted
    topic.configure(keep={"b": keep_last(2)}, min_garbage_percent=7)
    assert topic.options.keep == {b"b": keep_last(2)}
    assert topic.options.min_garbage_percent == 7
    assert hash(topic.options) == hash(topic.options)
    topic.configure(keep={})
    assert topic.options.keep == {}


def test_what_is_kept_is_a_value() -> None:
    assert keep_last(3) == keep_last(3) != keep_last(4)
    assert keep_for(60) == keep_for(timedelta(minutes=1)) == keep_for(60.0)
    assert (keep_for(0.25).kind, keep_for(0.25).value) == ("for", 250)
    assert len({keep_all(), keep_all(), keep_nothing(), keep_last(1)}) == 3
    for keep in (keep_all(), keep_last(10), keep_for(1.5), keep_nothing()):
        assert eval(repr(keep)) == keep
        assert pickle.loads(pickle.dumps(keep)) == keep


def test_wrong_rules(log: edgelog.Log) -> None:
    for wrong in (
        {"a": keep_last(65536)},
        {"a": keep_last(1), b"a": keep_last(2)},
        {"p" * 256: keep_all()},
        {f"{number}": keep_all() for number in range(65)},
    ):
        with pytest.raises(edgelog.InvalidError):
            log.topic("t", keep=wrong)  # type: ignore[arg-type]
    for nonsense in ([("a", keep_all())], {"a": 10}, {1.5: keep_all()}, "a"):
        with pytest.raises(TypeError):
            log.topic("t", keep=nonsense)  # type: ignore[arg-type]
    for nothing in ("1", None, True):
        with pytest.raises(TypeError):
            keep_for(nothing)  # type: ignore[arg-type]
    for time in (-1, timedelta(seconds=-1), float("nan")):
        with pytest.raises(edgelog.InvalidError):
            keep_for(time)
    for count in (0, -1, 2**64):
        with pytest.raises(edgelog.InvalidError):
            keep_last(count)
    assert log.topics() == []


def test_the_program_decides(log: edgelog.Log) -> None:
    topic = small(log)
    for number in range(100):
        topic.append(FILLER, key=f"sensor {number % 2}")
    noise = topic.append(FILLER, key="noise").offset
    seal(topic)
    last: dict[bytes, deque[int]] = {}
    with topic.compaction() as compaction:
        for record in compaction:
            assert record.offset < compaction.end_offset
            if record.key == b"noise":
                compaction.drop(record.offset)
            elif record.key is not None:
                last.setdefault(record.key, deque(maxlen=2)).append(record.offset)
        for key, offsets in last.items():
            compaction.keep_from(key, offsets[0])
        assert compaction.report is None
    assert compaction.closed
    assert compaction.report is not None
    assert compaction.report.records_removed == 97
    left = [record.offset for record in topic.reader() if record.key is not None]
    assert left == [96, 97, 98, 99]
    assert noise not in left


def test_a_snapshot_lets_everything_before_it_go(log: edgelog.Log) -> None:
    topic = small(log)
    for number in range(300):
        topic.append(FILLER, key="snapshot" if number % 100 == 99 else f"change {number}")
    seal(topic)
    with topic.compaction() as compaction:
        snapshot = max(record.offset for record in compaction if record.key == b"snapshot")
        compaction.rewind()
        for record in compaction:
            if record.offset < snapshot:
                compaction.drop(record.offset)
    assert next(topic.reader()).offset == snapshot == 299


def test_an_exception_abandons(log: edgelog.Log) -> None:
    topic = small(log)
    for _ in range(100):
        topic.append(FILLER, key="key")
    seal(topic)
    compaction = topic.compaction()

    def fails() -> None:
        with compaction:
            compaction.keep_from("key", 50)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert compaction.closed
    assert compaction.report is None
    with topic.compaction() as compaction:
        compaction.keep_from("key", 50)
        compaction.abandon()
        compaction.abandon()
    assert len(keys(topic)) == 100
    for call in (
        compaction.commit,
        compaction.rewind,
        compaction.read,
        lambda: compaction.drop(1),
        lambda: compaction.keep_from("key", 1),
        lambda: next(compaction),
    ):
        with pytest.raises(edgelog.ClosedError, match="compaction"):
            call()


def test_a_commit_inside_the_block(log: edgelog.Log) -> None:
    topic = small(log)
    for _ in range(100):
        topic.append(FILLER, key="key")
    seal(topic)
    with topic.compaction() as compaction:
        assert [record.offset for record in compaction.read(3)] == [0, 1, 2]
        assert next(compaction).offset == 3
        assert [record.offset for record in compaction.read(2)] == [4, 5]
        compaction.keep_from("key", 90)
        report = compaction.commit()
    assert compaction.report == report
    assert len(keys(topic)) == 10


def test_limits_of_one_compaction(log: edgelog.Log) -> None:
    topic = log.topic("t", compaction_keys_max=2)
    with topic.compaction() as compaction:
        compaction.keep_from("a", 1)
        compaction.keep_from("b", 1)
        with pytest.raises(edgelog.TooLargeError):
            compaction.keep_from("c", 1)
        with pytest.raises(edgelog.TooLargeError):
            compaction.keep_from("k" * 65536, 1)
        with pytest.raises(edgelog.InvalidError):
            compaction.drop(-1)
        with pytest.raises(edgelog.InvalidError):
            compaction.read(0)
    with pytest.raises(edgelog.InvalidError):
        topic.compaction(1)


def test_it_outlives_its_topic_and_not_its_log(path: os.PathLike[str]) -> None:
    log = edgelog.open(path)
    topic = small(log)
    seal(topic)
    one, two = topic.compaction(), topic.compaction()
    topic.close()
    one.drop(0)
    one.commit()
    assert next(log.topic("topic").reader()).offset == 1
    log.close()
    with pytest.raises(edgelog.ClosedError):
        two.read()
    two.abandon()


def test_one_thread_at_a_time(log: edgelog.Log) -> None:
    topic = small(log)
    for _ in range(2000):
        topic.append(FILLER, key="key")
    compaction = topic.compaction()
    compaction.keep_from("key", compaction.end_offset - 5)
    problems: list[Exception] = []

    def call() -> None:
        for _ in range(200):
            try:
                compaction.drop(0)
            except (edgelog.MisuseError, edgelog.ClosedError):
                pass
            except Exception as error:
                problems.append(error)

    threads = [threading.Thread(target=call) for _ in range(3)]
    for thread in threads:
        thread.start()
    while True:
        try:
            compaction.commit()
            break
        except edgelog.MisuseError:
            pass
    for thread in threads:
        thread.join()
    assert not problems
    assert len(keys(topic)) < 100


def test_in_a_forked_child(log: edgelog.Log) -> None:
    topic = small(log)
    seal(topic)
    compaction = topic.compaction()
    child = os.fork()
    if child == 0:
        try:
            compaction.drop(0)
        except edgelog.ForkedError:
            try:
                topic.compact()
            except edgelog.ForkedError:
                os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    compaction.drop(0)
    assert compaction.commit().records_removed == 1
