"""A worker: edgelog's Python package, and what a Python program would use in its place.

usage: packages.py DIR

    edgelog-buffered, edgelog-written   single appends; and the flush
    edgelog-batch-buffered, edgelog-batch-written   batches of 64; and the flush
    lmdb, lmdb-append                   puts inside one transaction, and its commit; the second
                                        says that the keys rise
    lmdb-putmulti                       the same keys with one call, and the commit
    sqlite                              inserts in one transaction, WAL
    persist-queue                       puts into its queue of files

See README.md, "Workers". The keys exist before the time begins; opening and
closing is not in it. Nobody syncs: what is compared survives the process, not a power cut.
"""

import random
import shutil
import sqlite3
import sys
import time
from collections.abc import Callable
from pathlib import Path

import edgelog
import lmdb
import persistqueue

BATCH_RECORDS = 64

directory = Path(sys.argv[1]) / "python"
# Nanoseconds that passed, and that this process computed.
Took = tuple[int, int]


def now() -> Took:
    return time.perf_counter_ns(), time.process_time_ns()


def since(start: Took) -> Took:
    wall, cpu = now()
    return wall - start[0], cpu - start[1]


def expect(wanted: int, got: int) -> None:
    if wanted != got:
        raise SystemExit(f"{got} records are there, not {wanted}")


def edgelog_singles(durability: str) -> Callable[[list[bytes], bytes], Took]:
    def run(keys: list[bytes], value: bytes) -> Took:
        with edgelog.open(directory / "log", mode="exclusive") as log:
            topic = log.topic("bench", durability=durability)
            append = topic.append
            start = now()
            for key in keys:
                append(value, key=key)
            topic.flush()
            took = since(start)
            expect(len(keys), topic.partition_stats().written_offset)
            return took

    return run


def edgelog_batches(durability: str) -> Callable[[list[bytes], bytes], Took]:
    def run(keys: list[bytes], value: bytes) -> Took:
        with edgelog.open(directory / "log", mode="exclusive") as log:
            topic = log.topic("bench", durability=durability)
            append_batch = topic.append_batch
            start = now()
            for at in range(0, len(keys), BATCH_RECORDS):
                append_batch([(key, value) for key in keys[at : at + BATCH_RECORDS]])
            topic.flush()
            took = since(start)
            expect(len(keys), topic.partition_stats().written_offset)
            return took

    return run


def open_lmdb() -> lmdb.Environment:
    """Without fsync at the commit: as edgelog's `written`, and faster than with it."""
    return lmdb.open(str(directory / "lmdb"), map_size=4 << 30, sync=False)


def lmdb_puts(append: bool) -> Callable[[list[bytes], bytes], Took]:
    def run(keys: list[bytes], value: bytes) -> Took:
        with open_lmdb() as environment:
            start = now()
            with environment.begin(write=True) as transaction:
                put = transaction.put
                if append:
                    for key in keys:
                        put(key, value, append=True)
                else:
                    for key in keys:
                        put(key, value)
            took = since(start)
            expect(len(keys), environment.stat()["entries"])
            return took

    return run


def lmdb_putmulti(keys: list[bytes], value: bytes) -> Took:
    with open_lmdb() as environment:
        start = now()
        with environment.begin(write=True) as transaction, transaction.cursor() as cursor:
            cursor.putmulti((key, value) for key in keys)
        took = since(start)
        expect(len(keys), environment.stat()["entries"])
        return took


def sqlite_inserts(keys: list[bytes], value: bytes) -> Took:
    database = sqlite3.connect(directory / "sqlite", isolation_level=None)
    database.execute("pragma journal_mode = wal")
    database.execute("pragma synchronous = off")
    database.execute("create table log (id integer primary key, key blob, value blob)")
    insert = "insert into log (key, value) values (?, ?)"
    start = now()
    database.execute("begin")
    for key in keys:
        database.execute(insert, (key, value))
    database.execute("commit")
    took = since(start)
    expect(len(keys), database.execute("select count(*) from log").fetchone()[0])
    database.close()
    return took


def persist_queue_puts(keys: list[bytes], value: bytes) -> Took:
    queue = persistqueue.Queue(str(directory / "queue"))
    start = now()
    for key in keys:
        queue.put((key, value))
    took = since(start)
    expect(len(keys), queue.qsize())
    return took


WORK: dict[str, Callable[[list[bytes], bytes], Took]] = {
    "edgelog-buffered": edgelog_singles("buffered"),
    "edgelog-written": edgelog_singles("written"),
    "edgelog-batch-buffered": edgelog_batches("buffered"),
    "edgelog-batch-written": edgelog_batches("written"),
    "lmdb": lmdb_puts(append=False),
    "lmdb-append": lmdb_puts(append=True),
    "lmdb-putmulti": lmdb_putmulti,
    "sqlite": sqlite_inserts,
    "persist-queue": persist_queue_puts,
}


def main() -> None:
    for line in sys.stdin:
        name, records, value_bytes = line.split()
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        keys = [number.to_bytes(8, "big") for number in range(int(records))]
        value = random.Random(1).randbytes(int(value_bytes))
        print(*WORK[name](keys, value), flush=True)
        shutil.rmtree(directory)


if __name__ == "__main__":
    main()
