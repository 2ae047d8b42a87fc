"""Lists what an edgelog directory holds. Written from core/FORMAT.md alone, and changes nothing.

reader.py DIR          one readable line for each thing found
reader.py DIR --json   the same as JSON lines
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from descriptions import description, read_checkpoint, read_topic
from fields import NewerError, NoLogError
from recovery import read_partition, segments_of, topic_from_headers
from segments import Record, Segment

TOPIC_NAME = re.compile(r"t[0-9a-f]{8}")
SEGMENT_NAME = re.compile(r"p[0-9a-f]{4}-[0-9a-f]{16}-[0-9a-f]{8}\.seg")
Line = dict[str, Any]


def log_lines(root: Path) -> Iterator[Line]:
    topics = (path.parent.name for path in root.glob("t*/TOPIC"))
    if not (root / "LOG").is_file() and not any(map(TOPIC_NAME.fullmatch, topics)):
        raise NoLogError(f"{root} is not a log")
    body = description(root / "LOG", b"EDGELOG1")
    if body is None:
        yield {"type": "log", "damaged": True}
    else:
        yield {"type": "log", "identity": body.uint(8), "made_ms": body.uint(8)}
    for folder in sorted(root.iterdir()):
        if TOPIC_NAME.fullmatch(folder.name) and folder.is_dir() and is_topic(folder):
            yield from topic_lines(folder)


def is_topic(folder: Path) -> bool:
    if (folder / "DELETED").exists():
        return False
    return (folder / "TOPIC").exists() or any(map(is_segment, folder.iterdir()))


def is_segment(path: Path) -> bool:
    return bool(SEGMENT_NAME.fullmatch(path.name)) and path.is_file() and not path.is_symlink()


def topic_lines(folder: Path) -> Iterator[Line]:
    topic = read_topic(folder) or topic_from_headers(folder)
    if topic is None:
        yield {"type": "topic", "folder": folder.name, "damaged": True}
        return
    yield {"type": "topic", **vars(topic)}
    checkpoint = read_checkpoint(folder, topic)
    if checkpoint is not None:
        yield {"type": "checkpoint", "topic": topic.name, **vars(checkpoint)}
    segments = segments_of(folder, topic)
    for number in range(topic.partitions):
        partition = read_partition(number, segments, topic, checkpoint)
        place = {"topic": topic.name, "partition": number}
        for segment in (each for each in segments if each.partition == number):
            yield {"type": "segment", **place, **segment_line(segment)}
        for damage in partition.damage:
            yield {"type": "damage", **place, **vars(damage)}
        for start, end in partition.gaps:
            yield {"type": "gap", **place, "from": start, "to": end}
        for record in partition.records:
            yield {"type": "record", **place, **record_line(record)}
        yield {"type": "partition", **place, "start": partition.start, "next": partition.next}


def segment_line(segment: Segment) -> Line:
    return {
        "file": segment.file,
        "base": segment.base,
        "generation": segment.generation,
        "bytes": len(segment.data),
        "state": segment.state,
        "header": None if segment.header is None else vars(segment.header),
        "footer": None if segment.footer is None else vars(segment.footer),
        "clocks": [vars(clock) for clock in segment.clocks],
    }


def record_line(record: Record) -> Line:
    """Bytes are told as hexadecimal digits; no key is null, an empty key is ""."""
    return {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "trusted": record.trusted,
        "key": None if record.key is None else record.key.hex(),
        "value": None if record.value is None else record.value.hex(),
        "headers": [[name.hex(), value.hex()] for name, value in record.headers],
        "tombstone": record.value is None,
    }


def readable(line: Line) -> str:
    fields = (f"{name}={value}" for name, value in line.items() if name != "type")
    return f"{line['type']:10} " + " ".join(
        text if len(text) <= 60 else text[:57] + "..." for text in fields
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="List what an edgelog directory holds.")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--json", action="store_true", help="print JSON lines")
    arguments = parser.parse_args()
    try:
        for line in log_lines(arguments.directory):
            print(json.dumps(line) if arguments.json else readable(line))
    except (NewerError, NoLogError, OSError) as error:
        print(f"reader.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
