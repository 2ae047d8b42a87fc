"""Opening logs and topics, their options and figures."""

from pathlib import Path

import edgelog
import pytest


def test_create(path: Path) -> None:
    with pytest.raises(edgelog.NotFoundError):
        edgelog.open(path, create=False)
    assert not path.exists()
    edgelog.open(path, create="new").close()
    with pytest.raises(edgelog.ExistsError):
        edgelog.open(path, create="new")
    edgelog.open(path, create=False).close()
    edgelog.open(path, create=True).close()


def test_create_topic(log: edgelog.Log) -> None:
    with pytest.raises(edgelog.NotFoundError):
        log.topic("topic", create=False)
    log.topic("topic", create="new")
    with pytest.raises(edgelog.ExistsError):
        log.topic("topic", create="new")
    assert log.topic("topic", create=False).name == "topic"
    assert log.topics() == ["topic"]


def test_paths(tmp_path: Path) -> None:
    with edgelog.open(str(tmp_path / "text")) as log:
        assert log.path == str(tmp_path / "text")
        assert log.mode == "shared"
    with edgelog.open(tmp_path / "gr\u00fcn") as log:
        assert log.path.endswith("gr\u00fcn")
    with pytest.raises(edgelog.InvalidError):
        edgelog.open("zero\0byte")
    with pytest.raises(edgelog.Error):
        edgelog.open("")
    with pytest.raises(TypeError):
        edgelog.open(5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "name", ["../x", "a/b", ".", "..", "a", "ab", "1", "gr\u00fcn", " ", "\n", "x" * 255]
)
def test_names(log: edgelog.Log, path: Path, name: str) -> None:
    topic = log.topic(name)
    topic.append(name.encode())
    assert topic.name == name
    assert name in log.topics()
    assert [record.value for record in log.topic(name, create=False).reader()] == [name.encode()]
    assert sorted(entry.name for entry in path.parent.iterdir()) == [path.name]


@pytest.mark.parametrize("name", ["", "x" * 256, "\u00fc" * 128])
def test_wrong_names(log: edgelog.Log, name: str) -> None:
    with pytest.raises(edgelog.InvalidError):
        log.topic(name)
    assert log.topics() == []


def test_topics(log: edgelog.Log) -> None:
    for name in ("b", "a", "c"):
        log.topic(name)
    assert log.topics() == ["a", "b", "c"]
    log.delete_topic("b")
    assert log.topics() == ["a", "c"]
    with pytest.raises(edgelog.NotFoundError):
        log.delete_topic("b")


def test_a_deleted_topic_says_so(log: edgelog.Log) -> None:
    topic = log.topic("topic")
    reader = topic.reader()
    log.delete_topic("topic")
    with pytest.raises(edgelog.DeletedError):
        topic.append(b"x")
    with pytest.raises(edgelog.DeletedError):
        next(reader)


def test_options_are_kept(path: Path) -> None:
    given = {
        "partitions": 3,
        "durability": "buffered",
        "when_full": "reject",
        "linger_ms": 50,
        "sync_interval_ms": 1000,
        "buffer_bytes": 32768,
        "segment_bytes": 131072,
        "max_bytes": 10_000_000,
        "max_age_ms": 86_400_000,
        "max_records": 1_000_000,
    }
    with edgelog.open(path) as log:
        options = log.topic("topic", **given).options  # type: ignore[arg-type]
        assert {name: getattr(options, name) for name in given} == given
        assert repr(options).startswith("TopicOptions(partitions=3, durability='buffered'")
    with edgelog.open(path) as log:
        again = log.topic("topic").options
        assert again == options
        assert hash(again) == hash(options)


def test_defaults(topic: edgelog.Topic) -> None:
    options = topic.options
    assert options.partitions == 1
    assert options.durability == "written"
    assert options.when_full == "drop_oldest"
    assert options.linger_ms == 200
    assert (options.max_bytes, options.max_age_ms, options.max_records) == (0, 0, 0)


def test_configure_changes_what_is_given(topic: edgelog.Topic) -> None:
    topic.configure(max_records=1000, durability="synced")
    topic.configure(max_bytes=5_000_000)
    options = topic.options
    assert (options.max_records, options.max_bytes) == (1000, 5_000_000)
    assert options.durability == "synced"
    topic.configure(max_records=0)
    assert topic.options.max_records == 0
    assert topic.options.max_bytes == 5_000_000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"durability": "sometimes"}, "durability is one of 'buffered', 'written', 'synced'"),
        ({"when_full": "explode"}, "when_full is one of"),
        ({"partitions": 2**32}, "out of range"),
        ({"max_bytes": -1}, "out of range"),
        ({"create": "maybe"}, "create is one of 'new'"),
        ({"partitions": 1025}, "1025 partitions"),
    ],
)
def test_wrong_options(log: edgelog.Log, options: "dict[str, object]", message: str) -> None:
    with pytest.raises(edgelog.InvalidError, match=message):
        log.topic("topic", **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "options",
    [
        {"mode": "sometimes"},
        {"maintenance": "never"},
        {"on_damage": "cry"},
        {"lock_timeout": -1.0},
        {"busy_timeout": -1.0},
        {"log_bytes_max": -1},
    ],
)
def test_wrong_log_options(path: Path, options: "dict[str, object]") -> None:
    with pytest.raises(edgelog.InvalidError):
        edgelog.open(path, **options)  # type: ignore[arg-type]
    assert not path.exists()


def test_unknown_words_are_type_errors(path: Path, topic: edgelog.Topic) -> None:
    with pytest.raises(TypeError):
        edgelog.open(path, colour="green")  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        topic.append(b"x", 5)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        topic.append(b"x", durability=3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="not float"):
        topic.append(5.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="not bool"):
        topic.append(b"x", key=True)
    with pytest.raises(TypeError):
        topic.append(b"x", timestamp="now")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        topic.reader(start=5.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        topic.append(b"x", headers=5)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        topic.append_batch(5)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        edgelog.Log()
    assert topic.stats().records == 0


def test_read_only(path: Path) -> None:
    with edgelog.open(path) as log:
        log.topic("topic").append(b"x")
    with edgelog.open(path, mode="read_only") as log:
        assert log.mode == "read_only"
        topic = log.topic("topic", create=False)
        assert next(topic.reader()).value == b"x"
        with pytest.raises(edgelog.ReadOnlyError):
            topic.append(b"y")
        with pytest.raises(edgelog.ReadOnlyError):
            log.delete_topic("topic")


def test_stats(log: edgelog.Log) -> None:
    topic = log.topic("topic", partitions=2)
    for number in range(10):
        topic.append(b"%d" % number, partition=number % 2)
    stats = topic.stats()
    assert (stats.partitions, stats.records, stats.appended_records) == (2, 10, 10)
    assert stats.bytes >= stats.appended_bytes > 0
    assert stats.dropped_records == stats.damaged_bytes == 0
    assert repr(stats).startswith("TopicStats(partitions=2, records=10")
    one = topic.partition_stats(1)
    assert (one.partition, one.earliest_offset, one.next_offset, one.records) == (1, 0, 5, 5)
    whole = log.stats()
    assert whole.topics == 1
    assert whole.bytes >= stats.bytes
    assert whole.lock in ("ofd", "flock", "file", "none")
    assert whole.wait in ("own", "poll", "inotify")
    with pytest.raises(edgelog.InvalidError):
        topic.partition_stats(2)


def test_retention(log: edgelog.Log) -> None:
    topic = log.topic("topic", max_records=1000, segment_bytes=65536)
    for _ in range(100):
        topic.append_batch([bytes(100)] * 100)
    topic.retain()
    stats = topic.stats()
    assert stats.records < 10_000
    assert stats.dropped_records == 10_000 - stats.records
    first = next(topic.reader())
    assert first.offset == topic.partition_stats().earliest_offset == stats.dropped_records


def test_reject_when_full(log: edgelog.Log) -> None:
    topic = log.topic("topic", max_bytes=200_000, when_full="reject")

    def fill() -> None:
        for _ in range(10_000):
            topic.append(bytes(100))

    with pytest.raises(edgelog.FullError):
        fill()
    assert 0 < topic.stats().bytes <= 200_000


def test_manual_maintenance(path: Path) -> None:
    with edgelog.open(path, maintenance="manual") as log:
        log.topic("topic").append(b"x", durability="buffered")
        log.maintain(0.05)
        log.maintain()
        with pytest.raises(edgelog.InvalidError):
            log.maintain(-1)


def test_reports(log: edgelog.Log) -> None:
    log.topic("topic").append(b"x")
    for report in (log.recovery(), log.verify()):
        assert not report
        assert (report.total, len(report), list(report), report.entries) == (0, 0, [], ())
        assert repr(report) == "Report(total=0, entries=())"


def test_versions() -> None:
    assert edgelog.__version__ == edgelog.LIBRARY_VERSION
    assert isinstance(edgelog.LINKED, bool)
