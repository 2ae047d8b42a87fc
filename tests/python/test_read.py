"""Reading records without waiting."""

import datetime

import edgelog
import pytest


@pytest.fixture
def numbered(log: edgelog.Log) -> edgelog.Topic:
    """A topic with 1000 numbered records, two minutes apart, with ten keys."""
    topic = log.topic("numbered")
    for number in range(1000):
        topic.append(
            b"%d" % number, key=number % 10, timestamp=120_000 * number, durability="buffered"
        )
    topic.flush()
    return topic


def values(records: "list[edgelog.Record] | edgelog.Reader | edgelog.Follow") -> list[int]:
    return [int(record.value or b"") for record in records]


def test_iteration_ends_at_the_end(numbered: edgelog.Topic) -> None:
    reader = numbered.reader()
    assert values(reader) == list(range(1000))
    assert values(reader) == []
    numbered.append(b"1000")
    assert values(reader) == [1000]


def test_read_gives_lists(numbered: edgelog.Topic) -> None:
    reader = numbered.reader()
    assert values(reader.read(1)) == [0]
    assert values(reader.read(max=3)) == [1, 2, 3]
    read = [4]
    while records := reader.read(max=100):
        assert len(records) <= 100
        read = values(records)
    assert read[-1] == 999
    assert reader.read() == []


def test_read_after_iterating_misses_nothing(numbered: edgelog.Topic) -> None:
    reader = numbered.reader()
    seen = [int(next(reader).value or b"") for _ in range(3)]
    seen += values(reader.read(2))
    seen += [int(next(reader).value or b"")]
    while records := reader.read(500):
        seen += values(records)
    assert seen == list(range(1000))


def test_starts(numbered: edgelog.Topic) -> None:
    assert values(numbered.reader("earliest"))[0] == 0
    assert values(numbered.reader(start="latest")) == []
    assert values(numbered.reader(start=997)) == [997, 998, 999]
    # One record more than ten minutes into the log.
    moment = datetime.datetime(1970, 1, 1, 0, 11, tzinfo=datetime.timezone.utc)
    assert values(numbered.reader(start=moment))[0] == 6


def test_reverse(numbered: edgelog.Topic) -> None:
    assert values(numbered.reader(reverse=True)) == list(range(999, -1, -1))
    assert values(numbered.reader(start=2, reverse=True)) == [2, 1, 0]
    moment = datetime.datetime(1970, 1, 1, 0, 11, tzinfo=datetime.timezone.utc)
    assert values(numbered.reader(start=moment, reverse=True))[0] == 5


def test_by_key(numbered: edgelog.Topic) -> None:
    assert values(numbered.reader(key=7)) == list(range(7, 1000, 10))
    assert values(numbered.reader(key=7, start=900)) == list(range(907, 1000, 10))
    assert values(numbered.reader(key=7, reverse=True))[:2] == [997, 987]
    assert values(numbered.reader(key=b"no such key")) == []


def test_seek(numbered: edgelog.Topic) -> None:
    reader = numbered.reader()
    next(reader)
    reader.seek(500)
    assert int(next(reader).value or b"") == 500
    reader.seek("latest")
    assert values(reader) == []
    reader.seek("earliest")
    assert int(next(reader).value or b"") == 0


def test_position_is_that_of_the_next_record(numbered: edgelog.Topic) -> None:
    reader = numbered.reader()
    assert reader.position() == 0
    next(reader)
    assert reader.position() == 1
    reader.read(10)
    assert reader.position() == 11
    list(reader)
    assert reader.position() == 1000
    reader.seek(42)
    assert reader.position() == 42


def test_partitions(log: edgelog.Log) -> None:
    topic = log.topic("many", partitions=3)
    for number in range(30):
        topic.append(b"%d" % number, partition=number % 3)
    assert sorted(values(topic.reader())) == list(range(30))
    assert values(topic.reader(partition=1)) == list(range(1, 30, 3))
    for partition in range(3):
        mine = [r.offset for r in topic.reader() if r.partition == partition]
        assert mine == list(range(10))
    with pytest.raises(edgelog.InvalidError):
        topic.reader(partition=3)


def test_gaps_are_counted(numbered: edgelog.Topic) -> None:
    reader = numbered.reader()
    list(reader)
    gaps = reader.gaps()
    assert (gaps.gaps, gaps.records_lost) == (0, 0)
    assert repr(gaps) == "Gaps(gaps=0, records_lost=0)"


def test_records_of_every_size(topic: edgelog.Topic) -> None:
    sizes = [0, 1, 100, 4095, 4096, 65_535, 65_536, 1_000_000, 5_000_000]
    for size in sizes:
        topic.append(bytes([size % 251]) * size)
    read = list(topic.reader())
    assert [len(record.value or b"") for record in read] == sizes
    assert all(record.value == bytes([size % 251]) * size for record, size in zip(read, sizes))


def test_records_outlive_everything(path: "object", log: edgelog.Log) -> None:
    topic = log.topic("kept")
    for number in range(500):
        topic.append(b"%d" % number, key=number)
    with topic.reader() as reader:
        records = list(reader)
    log.close()
    assert values(records) == list(range(500))
    assert [record.key for record in records[:2]] == [bytes(8), bytes(7) + b"\x01"]
