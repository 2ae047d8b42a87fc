"""Compacts all that may go of a run's log, when nobody works on it any more.

usage: compact.py DIRECTORY
"""

from __future__ import annotations

import sys
import time
from collections import deque
from pathlib import Path

import edgelog
from history import COMPACTED

# What a rule keeps for a time is older than that then, in running time, and so are tombstones.
OLD_NS = 4_500_000_000


def decide(topic: edgelog.Topic) -> int:
    """As the actors do in their loops; answers how many records went."""
    last: dict[bytes, deque[int]] = {}
    with topic.compaction() as compaction:
        for record in compaction:
            assert record.key
            if record.key.startswith(b"two/"):
                last.setdefault(record.key, deque(maxlen=2)).append(record.offset)
            elif record.offset % 2:
                compaction.drop(record.offset)
        for key, offsets in last.items():
            compaction.keep_from(key, offsets[0])
    assert compaction.report
    return compaction.report.records_removed


def main() -> None:
    directory = Path(sys.argv[1])
    end_ns = int((directory / "end").read_text())
    time.sleep(max(0, end_ns + OLD_NS - time.monotonic_ns()) / 1e9)
    with edgelog.open(directory / "log", maintenance="manual") as log:
        for name in log.topics():
            if not name.startswith(COMPACTED):
                continue
            topic = log.topic(name, create=False)
            topic.configure(min_garbage_percent=1)
            # An old tombstone goes when what it deleted has gone.
            while topic.compact().records_removed if topic.options.keep else decide(topic):
                pass


main()
