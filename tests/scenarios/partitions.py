"""Makes partitions.jsonl: where the partitioner `consistent` of the real librdkafka puts keys.

partitions.py           writes the file
partitions.py --check   fails if the file is not what this would write

librdkafka is the one inside of the package confluent-kafka. Without it nothing is asked and the
exit code is 77.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

FILE = Path(__file__).with_name("partitions.jsonl")
CANNOT_RUN = 77
COUNTS = (1, 2, 3, 7, 8, 64, 1000, 1024)
ENTITY_MAX = 2**56 - 1


def keys() -> Iterator[tuple[str, bytes]]:
    """The keys, each with a name."""
    yield "empty", b""
    yield "one letter", b"a"
    yield "one zero byte", b"\x00"
    yield "one byte of ones", b"\xff"
    yield "the digits of CRC-32's check value", b"123456789"
    for text in ("abc", "battery", "attic", "cellar", "name/17", "meter/4711", "debug/"):
        yield f"text {text}", text.encode()
    yield "a sentence", b"The quick brown fox jumps over the lazy dog"
    yield "UTF-8, two bytes a letter", "gr\u00fcn".encode()
    yield "UTF-8, three bytes a letter", "\u6e29\u5ea6".encode()
    yield "UTF-8, four bytes a letter", "\U0001f50b".encode()
    yield "a zero byte in front", b"\x00a"
    yield "a zero byte in the middle", b"a\x00b"
    yield "a zero byte at the end", b"a\x00"
    yield "four zero bytes", bytes(4)
    yield "32 zero bytes", bytes(32)
    yield "32 bytes of ones", b"\xff" * 32
    yield "no UTF-8", b"\xc3\x28\xf0\x80"
    yield "every byte", bytes(range(256))
    for number in (0, 1, 258, 2**32, 2**53 + 1, 2**63, 2**64 - 1):
        yield f"number {number}", number.to_bytes(8, "big")
    for kind, entity in ((1, 1), (1, 2), (7, 4711), (200, 0), (254, ENTITY_MAX)):
        yield f"edgelog_key({kind}, {entity})", bytes([kind]) + entity.to_bytes(7, "big")
    # Blocks that a fast CRC-32 takes at once, and a byte more.
    for size in (16, 17, 64, 65, 128, 129, 1000):
        yield f"{size} bytes", bytes(i * 7 % 251 for i in range(size))


def cannot_run(why: str) -> NoReturn:
    print(f"partitions.py cannot run: {why}")
    sys.exit(CANNOT_RUN)


def librdkafka() -> ctypes.CDLL:
    """The library that the package brings along."""
    package = importlib.util.find_spec("confluent_kafka")
    if package is None or package.origin is None:
        cannot_run("this Python has no package confluent-kafka")
    folder = Path(package.origin).parent.with_name("confluent_kafka.libs")
    found = sorted(folder.glob("librdkafka*.so*"))
    if len(found) != 1:
        cannot_run(f"confluent-kafka has {len(found)} librdkafka inside, not one")
    try:
        return ctypes.CDLL(str(found[0]))
    except OSError as error:
        cannot_run(f"librdkafka does not load: {error}")


def lines(library: ctypes.CDLL) -> Iterator[str]:
    consistent = library.rd_kafka_msg_partitioner_consistent
    consistent.restype = ctypes.c_int32
    # The topic, the key and its size, the number of partitions, and two for the application.
    consistent.argtypes = [
        ctypes.c_void_p,
        ctypes.c_char_p,
        ctypes.c_size_t,
        ctypes.c_int32,
        ctypes.c_void_p,
        ctypes.c_void_p,
    ]
    for name, key in keys():
        vector = {
            "name": name,
            "key": key.hex(),
            "crc32": f"{zlib.crc32(key):08x}",
            "partition_of": {
                str(count): consistent(None, key, len(key), count, None, None) for count in COUNTS
            },
        }
        yield json.dumps(vector) + "\n"


def main() -> int:
    if sys.argv[1:] not in ([], ["--check"]):
        print("usage: partitions.py [--check]", file=sys.stderr)
        return 2
    library = librdkafka()
    library.rd_kafka_version_str.restype = ctypes.c_char_p
    version = library.rd_kafka_version_str().decode()
    made = list(lines(library))
    if not sys.argv[1:]:
        FILE.write_text("".join(made))
        print(f"{len(made)} keys, as librdkafka {version} has them")
        return 0
    there = FILE.read_text().splitlines(keepends=True)
    wrong = [line for line in there if line not in made]
    missing = [line for line in made if line not in there]
    for line in wrong:
        print(f"only in the file: {line}", end="")
    for line in missing:
        print(f"not in the file: {line}", end="")
    if there != made:
        print(f"librdkafka {version} answers otherwise; without --check the file is made anew")
        return 1
    print(f"{len(there)} keys are where librdkafka {version} puts them")
    return 0


if __name__ == "__main__":
    sys.exit(main())
