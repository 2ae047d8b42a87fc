"""Appending records."""

import datetime
from typing import Any

import edgelog
import pytest


def test_append_tells_the_position(topic: edgelog.Topic) -> None:
    assert topic.append(b"a") == edgelog.Position(0, 0)
    assert topic.append(b"b") == (0, 1)
    partition, offset = topic.append(b"c")
    assert (partition, offset) == (0, 2)


def test_what_was_appended_is_read(topic: edgelog.Topic) -> None:
    topic.append(b"value", key=b"key", headers={"unit": "C", "place": "attic"})
    (record,) = topic.reader()
    assert record.partition == 0
    assert record.offset == 0
    assert record.key == b"key"
    assert record.value == b"value"
    assert record.headers == (("unit", b"C"), ("place", b"attic"))
    assert not record.is_tombstone


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (b"", b""),
        (b"\x00\xff", b"\x00\xff"),
        (bytearray(b"array"), b"array"),
        (memoryview(b"a view")[2:], b"view"),
        ("gr\u00fcn", b"gr\xc3\xbcn"),
    ],
)
def test_values(topic: edgelog.Topic, given: bytes, kept: bytes) -> None:
    topic.append(given)
    topic.append_batch([given, (None, given)])
    assert [record.value for record in topic.reader()] == [kept] * 3
    assert {record.key for record in topic.reader()} == {None}


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (b"bytes", b"bytes"),
        (b"", b""),
        (bytearray(b"array"), b"array"),
        ("gr\u00fcn", b"gr\xc3\xbcn"),
        (0, bytes(8)),
        (258, b"\x00\x00\x00\x00\x00\x00\x01\x02"),
        (2**64 - 1, b"\xff" * 8),
    ],
)
def test_keys(topic: edgelog.Topic, given: "bytes | str | int", kept: bytes) -> None:
    topic.append(b"value", key=given)
    topic.append_batch([(given, b"value")])
    topic.delete(given)
    assert [record.key for record in topic.reader()] == [kept] * 3
    assert len(list(topic.reader(key=given))) == 3
    assert edgelog.partition_of(given, 7) == edgelog.partition_of(kept, 7)


def test_entity_keys() -> None:
    assert edgelog.key(7, 0x0102) == b"\x07\x00\x00\x00\x00\x00\x01\x02"
    assert edgelog.key(255, 2**56 - 1) == b"\xff" * 8
    with pytest.raises(edgelog.InvalidError):
        edgelog.key(7, 2**56)
    with pytest.raises(edgelog.InvalidError):
        edgelog.key(256, 1)


def test_a_key_goes_to_its_partition(log: edgelog.Log) -> None:
    topic = log.topic("many", partitions=5)
    for number in range(50):
        place = topic.append(b"x", key=number)
        assert place.partition == edgelog.partition_of(number, 5)
    assert topic.append(b"x", partition=3).partition == 3


def test_without_a_key_partitions_take_turns(log: edgelog.Log) -> None:
    topic = log.topic("many", partitions=4)
    used = [topic.append(b"x").partition for _ in range(8)]
    assert sorted(used) == [0, 0, 1, 1, 2, 2, 3, 3]


def test_tombstones(topic: edgelog.Topic) -> None:
    topic.append(b"21", key="attic")
    topic.append(None, key="attic")
    topic.delete("cellar")
    tombstones = list(topic.reader())[1:]
    assert [record.key for record in tombstones] == [b"attic", b"cellar"]
    assert all(record.is_tombstone and record.value is None for record in tombstones)


def test_an_empty_value_is_no_tombstone(topic: edgelog.Topic) -> None:
    topic.append(b"", key="attic")
    (record,) = topic.reader()
    assert record.value == b""
    assert not record.is_tombstone


def test_neither_key_nor_value(topic: edgelog.Topic) -> None:
    with pytest.raises(edgelog.InvalidError):
        topic.append(None)
    assert topic.stats().records == 0


def test_latest(topic: edgelog.Topic) -> None:
    assert topic.latest("attic") is None
    topic.append(b"20", key="attic")
    topic.append(b"21", key="attic", headers={"unit": "C"})
    topic.append(b"15", key="cellar")
    newest = topic.latest("attic")
    assert newest is not None
    assert (newest.offset, newest.value, newest.headers) == (1, b"21", (("unit", b"C"),))
    topic.delete("attic")
    deleted = topic.latest("attic")
    assert deleted is not None
    assert deleted.is_tombstone


def test_timestamps(topic: edgelog.Topic) -> None:
    moment = datetime.datetime(2026, 11, 30, 12, 0, 0, 123456, tzinfo=datetime.timezone.utc)
    elsewhere = moment.astimezone(datetime.timezone(datetime.timedelta(hours=5)))
    topic.append(b"x", timestamp=moment)
    topic.append(b"x", timestamp=elsewhere)
    topic.append(b"x", timestamp=1_796_040_000_123)
    topic.append(b"x", timestamp=0)
    first, second, third, zero = topic.reader()
    assert first.timestamp_ms == second.timestamp_ms == third.timestamp_ms == 1_796_040_000_123
    assert first.timestamp == moment.replace(microsecond=123000)
    assert first.timestamp.tzinfo == datetime.timezone.utc
    assert zero.timestamp == datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


def test_the_last_time_and_those_behind_it(topic: edgelog.Topic) -> None:
    last = datetime.datetime.max.replace(tzinfo=datetime.timezone.utc)
    topic.append(b"x", timestamp=last)
    topic.append(b"x", timestamp=253_402_300_799_999)
    for record in topic.reader():
        assert record.timestamp_ms == 253_402_300_799_999
        assert record.timestamp == last.replace(microsecond=999000)

    class Late:
        def timestamp(self) -> float:
            return 1e300

    for wrong in (253_402_300_800_000, 2**63, 2**64 - 1, 2**64, Late()):
        with pytest.raises(edgelog.InvalidError):
            topic.append(b"x", timestamp=wrong)  # type: ignore[arg-type]
        with pytest.raises(edgelog.InvalidError):
            topic.delete(b"x", timestamp=wrong)  # type: ignore[arg-type]
    assert topic.stats().records == 2


def test_every_millisecond_of_a_datetime_comes_through(topic: edgelog.Topic) -> None:
    start = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
    step = datetime.timedelta(milliseconds=1)
    for number in range(1000):
        topic.append(b"x", timestamp=start + number * step, durability="buffered")
    topic.flush()
    times = [record.timestamp_ms for record in topic.reader()]
    first = int(start.timestamp()) * 1000
    assert times == list(range(first, first + 1000))


def test_the_clock_gives_the_time(topic: edgelog.Topic) -> None:
    # The clock that is cheap to read ticks every few milliseconds.
    before = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(milliseconds=20)
    topic.append(b"x")
    after = datetime.datetime.now(datetime.timezone.utc)
    (record,) = topic.reader()
    assert before <= record.timestamp <= after
    assert record.time_trusted


def test_headers(topic: edgelog.Topic) -> None:
    topic.append(
        b"x",
        headers=[("same", b"1"), ("same", b"2"), (b"\xff\xfe", b""), ("gr\u00fcn", "gelb")],
    )
    topic.append(b"x", headers={})
    topic.append(b"x", headers=iter([("a", b"b")]))
    first, second, third = topic.reader()
    assert [value for _, value in first.headers] == [b"1", b"2", b"", b"gelb"]
    assert [name for name, _ in first.headers] == ["same", "same", "\udcff\udcfe", "gr\u00fcn"]
    assert second.headers == ()
    assert third.headers == (("a", b"b"),)
    # Names that are no UTF-8 come back as the same bytes.
    topic.append(b"x", headers=first.headers)
    *_, copy = topic.reader()
    assert copy.headers == first.headers


def test_batch(topic: edgelog.Topic) -> None:
    place = topic.append_batch(
        [b"value", ("key", b"value"), (5, b"value"), ("key", None), ("key", b"v", {"a": b"b"})]
    )
    assert place == (0, 0)
    records = list(topic.reader())
    assert [record.offset for record in records] == list(range(5))
    assert [record.key for record in records] == [None, b"key", bytes(7) + b"\x05", b"key", b"key"]
    assert [record.is_tombstone for record in records] == [False, False, False, True, False]
    assert records[4].headers == (("a", b"b"),)


def test_batches_of_other_iterables(topic: edgelog.Topic) -> None:
    topic.append_batch((b"1", b"2"))
    topic.append_batch(bytes([number]) for number in range(3))
    topic.append_batch({"key": b"value"}.items())
    assert topic.stats().records == 6


def test_batch_of_records_that_were_read(log: edgelog.Log, topic: edgelog.Topic) -> None:
    topic.append(b"1", key="k", headers={"a": b"b"}, timestamp=1234)
    topic.delete("k", timestamp=5678)
    copies = log.topic("copies")
    copies.append_batch(topic.reader())
    assert list(copies.reader()) == list(topic.reader())


def test_a_batch_is_all_or_nothing(topic: edgelog.Topic) -> None:
    with pytest.raises(edgelog.InvalidError):
        topic.append_batch([b"good", (None, None)])
    with pytest.raises(TypeError):
        topic.append_batch([b"good", 5.5])  # type: ignore[list-item]
    with pytest.raises(edgelog.InvalidError):
        topic.append_batch([])
    assert list(topic.reader()) == []


def test_a_batch_goes_to_one_partition(log: edgelog.Log) -> None:
    topic = log.topic("many", partitions=4)
    place = topic.append_batch([b"1", b"2", b"3"], partition=2)
    assert place == (2, 0)
    assert [record.partition for record in topic.reader()] == [2, 2, 2]


@pytest.mark.parametrize("durability", ["buffered", "written", "synced"])
def test_durability(topic: edgelog.Topic, durability: str) -> None:
    topic.append(b"x", durability=durability)  # type: ignore[arg-type]
    stats = topic.partition_stats()
    assert stats.next_offset == 1
    assert stats.written_offset >= (0 if durability == "buffered" else 1)
    assert stats.durable_offset == (1 if durability == "synced" else stats.durable_offset)


def test_flush_and_sync(topic: edgelog.Topic, log: edgelog.Log) -> None:
    topic.append(b"x", durability="buffered")
    topic.flush()
    assert topic.partition_stats().written_offset == 1
    topic.append(b"x", durability="buffered")
    topic.sync()
    assert topic.partition_stats().durable_offset == 2
    topic.append(b"x", durability="buffered")
    log.flush()
    assert topic.partition_stats().written_offset == 3
    log.sync()
    assert topic.partition_stats().durable_offset == 3


def test_positions_are_like_tuples() -> None:
    import pickle

    place = edgelog.Position(1, 2)
    assert tuple(place) == (1, 2) == place
    assert place != (1, 3)
    assert place != "12"
    assert (place[0], place[1], place[-1], len(place)) == (1, 2, 2, 2)
    assert place < edgelog.Position(1, 3) < edgelog.Position(2, 0)
    assert hash(place) == hash((1, 2))
    assert {place: "x"}[(1, 2)] == "x"  # type: ignore[index]
    assert repr(place) == "Position(partition=1, offset=2)"
    assert pickle.loads(pickle.dumps(place)) == place
    with pytest.raises(IndexError):
        place[2]
    with pytest.raises(AttributeError):
        place.offset = 5  # type: ignore[misc]


def test_records_are_values(topic: edgelog.Topic) -> None:
    import pickle

    topic.append(b"x", key="k", headers={"a": b"b"})
    topic.append(b"y")
    first, second = topic.reader()
    assert first == next(topic.reader())
    assert first != second
    assert first != "x"
    assert hash(first) == hash(next(topic.reader()))
    assert pickle.loads(pickle.dumps(first)) == first
    assert repr(first).startswith("Record(partition=0, offset=0, timestamp_ms=")
    assert "key=b'k', value=b'x', headers=(('a', b'b'),))" in repr(first)
    with pytest.raises(AttributeError):
        first.value = b"z"  # type: ignore[misc]


def test_how_append_takes_its_arguments(topic: edgelog.Topic) -> None:
    import inspect

    signature = inspect.signature(edgelog.Topic.append)
    assert list(signature.parameters) == [
        "self",
        "value",
        "key",
        "headers",
        "timestamp",
        "partition",
        "durability",
    ]
    made = "".join(["ke", "y"])
    topic.append(value=b"1", **{made: "k"})  # type: ignore[arg-type]
    edgelog.Topic.append(topic, b"2", key=None, headers=None, timestamp=None, partition=None)
    bound = topic.append
    bound(b"3", **{"".join(["dura", "bility"]): "".join(["syn", "ced"])})  # type: ignore[arg-type]
    assert [(r.key, r.value) for r in topic.reader()] == [(b"k", b"1"), (None, b"2"), (None, b"3")]
    calls: list[tuple[tuple[object, ...], dict[str, object], str]] = [
        ((), {}, "missing 1 required positional argument: 'value'"),
        ((), {"key": "k"}, "missing 1 required positional argument: 'value'"),
        ((b"x", b"y"), {}, "takes 1 positional argument"),
        ((b"x",), {"value": b"y"}, "multiple values for argument 'value'"),
        ((b"x",), {"colour": "green"}, "unexpected keyword argument 'colour'"),
    ]
    for arguments, keywords, message in calls:
        with pytest.raises(TypeError, match=message):
            topic.append(*arguments, **keywords)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        edgelog.Topic.append(5, b"x")  # type: ignore[arg-type]
    assert topic.stats().records == 3


@pytest.mark.parametrize("one", ["text", b"bytes", bytearray(b"bytes"), {"key": b"value"}])
def test_what_is_one_thing_is_no_batch(topic: edgelog.Topic, one: Any) -> None:
    with pytest.raises(TypeError, match="iterable of records"):
        topic.append_batch(one)
    assert topic.stats().records == 0
