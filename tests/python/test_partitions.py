"""Where keys go: the vectors of tests/scenarios/partitions.jsonl, which librdkafka answered."""

import json
import zlib
from pathlib import Path

import edgelog
import pytest

FILE = Path(__file__).parent.parent / "scenarios" / "partitions.jsonl"
VECTORS = [json.loads(line) for line in FILE.read_text().splitlines()]
COUNTS = (1, 2, 3, 7, 8, 64, 1000, 1024)


@pytest.mark.parametrize("count", COUNTS)
def test_a_key_goes_where_librdkafka_puts_it(log: edgelog.Log, count: int) -> None:
    topic = log.topic("t", partitions=count)
    for vector in VECTORS:
        key, wanted = bytes.fromhex(vector["key"]), vector["partition_of"][str(count)]
        assert edgelog.partition_of(key, count) == wanted, vector["name"]
        assert topic.append(b"value", key=key).partition == wanted, vector["name"]
        assert topic.append_batch([(key, b"value")]).partition == wanted, vector["name"]


def test_numbers_and_text_are_the_keys_that_they_stand_for() -> None:
    for vector in VECTORS:
        word, _, rest = vector["name"].partition(" ")
        if word in ("number", "text"):
            key = int(rest) if word == "number" else rest
            assert edgelog.partition_of(key, 1000) == vector["partition_of"]["1000"]


def test_the_vectors_are_complete_and_their_sums_right() -> None:
    assert len(VECTORS) == 43
    for vector in VECTORS:
        assert f"{zlib.crc32(bytes.fromhex(vector['key'])):08x}" == vector["crc32"]
        assert vector["partition_of"].keys() == {str(count) for count in COUNTS}
