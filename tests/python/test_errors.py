"""The exceptions, one by one."""

import errno
import os
import pickle
from pathlib import Path

import edgelog
import pytest
from edgelog import _edgelog, _errors

ERRORS = {code: name for code, name in _edgelog._statuses().items() if code < 0}

BUILTINS = {
    "INVALID": ValueError,
    "MISUSE": RuntimeError,
    "CLOSED": ValueError,
    "FORKED": RuntimeError,
    "IO": OSError,
    "NO_SPACE": OSError,
    "TOO_LARGE": ValueError,
    "NOT_FOUND": FileNotFoundError,
    "EXISTS": FileExistsError,
    "LOCKED": BlockingIOError,
    "BUSY": BlockingIOError,
    "READ_ONLY": PermissionError,
    "POISONED": OSError,
    "NO_MEMORY": MemoryError,
    "INTERNAL": RuntimeError,
}


def test_every_error_of_the_library_has_a_class() -> None:
    assert len(ERRORS) >= 23
    assert set(ERRORS.values()) == set(_errors._CLASSES)
    for code, name in ERRORS.items():
        kind = _errors._CLASSES[name]
        public = name.title().replace("_", "") + "Error"
        assert getattr(edgelog, public) is kind
        assert (kind.__name__, kind.status, kind.code) == (public, code, name)
        assert issubclass(kind, edgelog.Error)
        assert kind.__doc__


@pytest.mark.parametrize("code", sorted(ERRORS, reverse=True))
def test_every_error_carries_everything(code: int) -> None:
    name = ERRORS[code]
    error = _errors._make(code, "it failed", 5, 1, 2, 3, 4, 6, 7)
    assert type(error) is _errors._CLASSES[name]
    assert str(error) == "it failed"
    assert (error.status, error.code, error.os_error) == (code, name, 5)
    assert (error.partition, error.segment, error.position) == (1, 2, 3)
    assert (error.offset, error.offset_end, error.process_id) == (4, 6, 7)
    if name in BUILTINS:
        assert isinstance(error, BUILTINS[name])
    if isinstance(error, OSError):
        assert (error.errno, error.strerror) == (5, "it failed")
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert (str(copy), vars(copy)) == (str(error), vars(error))
    if isinstance(error, OSError):
        assert isinstance(copy, OSError)
        assert (copy.errno, copy.strerror) == (5, "it failed")


def test_an_error_of_a_newer_library() -> None:
    error = _errors._make(-1000, "something new", None, None, None, None, None, None, None)
    assert type(error) is edgelog.Error
    assert (error.status, str(error)) == (-1000, "something new")


def test_errors_of_the_system(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"no directory")
    with pytest.raises(edgelog.Error) as caught:
        edgelog.open(file)
    assert caught.value.os_error in (errno.ENOTDIR, errno.EEXIST, None)
    with pytest.raises(edgelog.Error) as caught:
        edgelog.open("/proc/no/such/place")
    assert str(caught.value)


def test_too_large(topic: edgelog.Topic) -> None:
    with pytest.raises(edgelog.TooLargeError):
        topic.append(bytes(16 * 1024 * 1024))
    with pytest.raises(edgelog.TooLargeError):
        topic.append(b"x", key=bytes(edgelog.KEY_BYTES_MAX + 1))
    with pytest.raises(edgelog.TooLargeError):
        topic.append_batch([bytes(1024 * 1024)] * 17)
    with pytest.raises(edgelog.InvalidError):
        topic.append_batch([b"x"] * (edgelog.BATCH_RECORDS_MAX + 1))
    topic.append(b"x", key=bytes(edgelog.KEY_BYTES_MAX))
    assert topic.stats().records == 1


def test_numbers_out_of_range(topic: edgelog.Topic) -> None:
    for call in (
        lambda: topic.append(b"x", key=-1),
        lambda: topic.append(b"x", key=2**64),
        lambda: topic.append(b"x", partition=-1),
        lambda: topic.append(b"x", partition=1),
        lambda: topic.append(b"x", timestamp=-1),
        lambda: topic.reader(start=-1),
        lambda: topic.reader(partition=1),
        lambda: topic.reader().read(max=0),
        lambda: topic.reader().read(max=-1),
        lambda: edgelog.partition_of(b"x", 0),
    ):
        with pytest.raises(edgelog.InvalidError):
            call()
    assert topic.append(b"x") == (0, 0)


def damage(path: Path, topic: str = "topic") -> None:
    """Flips bits in the middle of the topic's largest file."""
    files = [file for file in path.rglob("*") if file.is_file()]
    largest = max(files, key=lambda file: file.stat().st_size)
    with largest.open("r+b") as file:
        file.seek(largest.stat().st_size // 2)
        byte = file.read(1)[0]
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte ^ 0xFF]))


def test_gaps(path: Path) -> None:
    with edgelog.open(path) as log:
        topic = log.topic("topic")
        for _ in range(100):
            topic.append(bytes(1000))
    damage(path)
    with edgelog.open(path) as log:
        topic = log.topic("topic")
        reader = topic.reader(on_gap="stop")
        records = []
        errors = []
        while True:
            try:
                batch = reader.read()
            except edgelog.GapError as error:
                errors.append(error)
                continue
            if not batch:
                break
            records += batch
        (gap,) = errors
        assert gap.offset is not None
        assert gap.offset_end is not None
        assert gap.partition == 0
        missing = set(range(100)) - {record.offset for record in records}
        assert missing == set(range(gap.offset, gap.offset_end)) != set()
        gaps = reader.gaps()
        assert (gaps.gaps, gaps.records_lost) == (1, len(missing))
        skipped = [record.offset for record in topic.reader()]
        assert skipped == [record.offset for record in records]
        report = log.verify()
        assert report
        (found, *_) = report
        assert (found.topic, found.kind, found.partition) == ("topic", "frame", 0)
        assert found.bytes > 0
        assert repr(found).startswith("Damage(kind='frame', topic='topic'")


def test_damage_can_be_refused(path: Path) -> None:
    with edgelog.open(path) as log:
        log.topic("topic").append(bytes(1000))
    damage(path)
    with pytest.raises(edgelog.DamagedError):
        edgelog.open(path, on_damage="refuse")
    with edgelog.open(path) as log:
        assert log.recovery()


def test_builtin_numbers() -> None:
    """Where the system gave no number, the exception still has the one that fits."""
    for name, number in {"NO_SPACE": errno.ENOSPC, "LOCKED": errno.EAGAIN}.items():
        error = _errors._CLASSES[name]("full")
        assert isinstance(error, OSError)
        assert (error.errno, error.os_error) == (number, None)
