"""Lets the reader and the engine read the same files, and counts the logs they agree on."""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import damage
import damages
import selfcheck
from descriptions import read_topic
from engine import Engine, EngineError, Line
from fields import U64, Cursor, NewerError, NoLogError
from reader import log_lines
from recovery import segments_of
from segments import RECORDS, TRUSTED_RECORDS, frame_at

Place = tuple[str, int]

CASES = [
    "no topic",
    "nasty names",
    "options",
    "partitions",
    "gathered",
    "durabilities",
    "shapes",
    "timestamps",
    "big",
    "rotation",
    "retention",
    "deleted",
    "reopened",
    "died",
    "rules",
    "compacted",
    "compacted again",
    "small",
    "tiny",
]
# A value of 0 in the file stands for a default that the engine fills in.
FILLED_IN = (
    "linger_ms",
    "buffer_bytes",
    "segment_bytes",
    "compaction_keys_max",
    "min_garbage_percent",
    "tombstone_ms",
    "compact_trigger_bytes",
)
# Who tells a loss: the reader as a gap; the engine when it opens the log or when it verifies it.
LOST = ("gap", "recovery", "verify")
# The kinds of the engine's entries that are about bytes that are not what they should be.
BYTES_DAMAGED = ("Frame", "TornTail", "Header", "Segment")
DIFFERENCES_SHOWN = 5
# One fault can fail thousands of logs.
FAILURES_SHOWN = 100


class View:
    """What one side read, brought into a common order."""

    def __init__(self, lines: list[Line]) -> None:
        self.topics: dict[str, Line] = {}
        self.ends: dict[Place, tuple[int, int]] = {}
        self.records: dict[Place, list[Line]] = defaultdict(list)
        self.lost: dict[Place, set[int]] = defaultdict(set)
        self.missing: dict[Place, set[int]] = defaultdict(set)
        self.bytes_damaged: dict[Place, set[tuple[int, int]]] = defaultdict(set)
        self.error = ""
        for line in lines:
            kind = line["type"]
            place = (line.get("topic", ""), line.get("partition", 0))
            if kind == "error":
                self.error = line["kind"]
            elif kind == "topic" and not line.get("damaged"):
                self.topics[line["name"]] = line
            elif kind == "record":
                self.records[place].append(line)
            elif kind == "partition":
                self.ends[place] = (line["start"], line["next"])
            elif kind == "missing":
                self.missing[place].update(range(line["from"], line["to"]))
            elif kind in LOST:
                self.lost[place].update(range(line["from"], line["to"]))
            if kind == "damage":
                self.add_bytes(place, line["base"], line["position"], line["end"])
            elif kind in ("recovery", "verify") and line["what"] in BYTES_DAMAGED:
                end = line["position"] + line["bytes"]
                self.add_bytes(place, line["segment"], line["position"], end)

    def add_bytes(self, place: Place, base: int, start: int, end: int) -> None:
        self.bytes_damaged[place].update((base, byte) for byte in range(start, end))


def missing_between(view: View, place: Place) -> set[int]:
    """The offsets without a record, up to the last record."""
    offsets = {record["offset"] for record in view.records[place]}
    start = view.ends[place][0]
    return set(range(start, max(offsets, default=start))) - offsets


def read_with_reader(directory: Path) -> View:
    try:
        return View(list(log_lines(directory)))
    except NewerError:
        return View([{"type": "error", "kind": "Version"}])
    except NoLogError:
        return View([{"type": "error", "kind": "NotFound"}])


def differences(reader: View, engine: View) -> Iterator[str]:
    if reader.error != engine.error:
        yield f"error: reader {reader.error!r}, engine {engine.error!r}"
        return
    if sorted(reader.topics) != sorted(engine.topics):
        yield f"topics: reader {sorted(reader.topics)}, engine {sorted(engine.topics)}"
    for name in reader.topics.keys() & engine.topics.keys():
        yield from topic_differences(reader.topics[name], engine.topics[name])
    for place in sorted(reader.ends.keys() | engine.ends.keys()):
        yield from partition_differences(place, reader, engine)


def topic_differences(reader: Line, engine: Line) -> Iterator[str]:
    name = reader["name"]
    if reader["partitions"] != engine["partitions"]:
        yield f"{name!r}: reader {reader['partitions']}, engine {engine['partitions']} partitions"
    for option, value in (reader["options"] or {}).items():
        filled_in = value == 0 and option in FILLED_IN
        if not filled_in and value != engine["options"][option]:
            yield f"{name!r}: {option}: reader {value}, engine {engine['options'][option]}"
    rules = [list(rule) for rule in reader["rules"] or []]
    if rules != engine["rules"]:
        yield f"{name!r}: rules: reader {rules}, engine {engine['rules']}"


def partition_differences(place: Place, reader: View, engine: View) -> Iterator[str]:
    if place not in reader.ends or place not in engine.ends:
        yield f"{place}: reader {reader.ends.get(place)}, engine {engine.ends.get(place)}"
        return
    for what, mine, other in (
        ("start and next", reader.ends[place], engine.ends[place]),
        ("lost", spans(sorted(reader.lost[place])), spans(sorted(engine.lost[place]))),
        # What a compaction left out is no gap; what is lost behind the last record is not met.
        (
            "missing",
            spans(sorted(reader.lost[place] & missing_between(reader, place))),
            spans(sorted(engine.missing[place])),
        ),
        ("records", offsets(reader, place), offsets(engine, place)),
        ("damaged bytes", bytes_damaged(reader, place), bytes_damaged(engine, place)),
    ):
        if mine != other:
            yield f"{place}: {what}: reader {mine}, engine {other}"
    theirs_at = {record["offset"]: record for record in engine.records[place]}
    for ours in reader.records[place]:
        theirs = theirs_at.get(ours["offset"], ours)
        if ours != theirs:
            yield f"{place}: record: reader {shortened(ours)}, engine {shortened(theirs)}"


def spans(offsets: Iterable[int]) -> str:
    """Numbers as the spans they make; the end of a span is not in it."""
    found: list[list[int]] = []
    for offset in offsets:
        if found and found[-1][1] == offset:
            found[-1][1] = offset + 1
        else:
            found.append([offset, offset + 1])
    return " ".join(f"{start}..{end}" for start, end in found) or "none"


def offsets(view: View, place: Place) -> str:
    return spans(record["offset"] for record in view.records[place])


def bytes_damaged(view: View, place: Place) -> str:
    """The spans of damaged bytes of each segment."""
    segments: dict[int, list[int]] = defaultdict(list)
    for base, byte in sorted(view.bytes_damaged[place]):
        segments[base].append(byte)
    return "; ".join(f"segment {base}: {spans(found)}" for base, found in segments.items())


def shortened(line: Line) -> str:
    text = json.dumps(line)
    return text if len(text) < 300 else text[:300] + "..."


def untruths(lines: list[Line]) -> Iterator[str]:
    """Headers and footers of a log without damage tell what its names and records tell."""
    topics = {line["name"]: line for line in lines if line["type"] == "topic"}
    records = defaultdict(list)
    for line in lines:
        if line["type"] == "record":
            records[line["topic"], line["partition"]].append(line)
        elif line["type"] in ("gap", "damage"):
            yield f"damage without a cause: {line}"
    for line in lines:
        if line["type"] == "segment":
            yield from segment_untruths(line, topics[line["topic"]], records)


def segment_untruths(segment: Line, topic: Line, records: dict[Any, list[Line]]) -> Iterator[str]:
    header, footer = segment["header"], segment["footer"]
    told = [header[name] for name in ("name", "identity", "partitions", "partition")]
    wanted = [topic["name"], topic["identity"], topic["partitions"], segment["partition"]]
    wanted += [segment["base"], segment["generation"]]
    if [*told, header["base"], header["generation"]] != wanted:
        yield f"{segment['file']}: the header tells {header}"
    if footer is None:
        return
    inside = [
        record
        for record in records[segment["topic"], segment["partition"]]
        if segment["base"] <= record["offset"] < footer["next"]
    ]
    times = [record["timestamp"] for record in inside]
    counted = [len(inside), sum(record["tombstone"] for record in inside)]
    counted += [min(times, default=U64 - 1), max(times, default=0)]
    if [footer[name] for name in ("records", "tombstones", "lowest", "highest")] != counted:
        yield f"{segment['file']}: the footer tells {footer}, the records {counted}"
    ends = [entry[0] for entry in footer["index"][1:]] + [footer["next"]]
    for (offset, _, highest), end in zip(footer["index"], ends):
        between = [r["timestamp"] for r in inside if offset <= r["offset"] < end]
        if highest != max(between):
            yield f"{segment['file']}: the index tells {highest} at {offset}, not {max(between)}"


def index_untruths(directory: Path) -> Iterator[str]:
    """At the places that an index tells, frames of records start, with these offsets or later."""
    for folder in directory.glob("t????????"):
        topic = read_topic(folder)
        for segment in segments_of(folder, topic) if topic else []:
            for offset, position, _ in segment.footer.index if segment.footer else []:
                frame = frame_at(segment, position)
                if frame is None or frame.kind not in (RECORDS, TRUSTED_RECORDS):
                    yield f"{segment.file}: no frame of records at {position}"
                elif segment.base + Cursor(frame.body).varint() < offset:
                    yield f"{segment.file}: the frame at {position} starts before {offset}"


class Comparison:
    def __init__(self, engine: Engine, work: Path) -> None:
        self.engine = engine
        self.work = work
        self.passed = 0
        self.failed = 0

    def report(self, name: str, wrong: list[str], quiet: bool = False) -> None:
        self.failed += bool(wrong)
        self.passed += not wrong
        if (wrong and self.failed > FAILURES_SHOWN) or (quiet and not wrong):
            return
        print(f"{'FAILED' if wrong else 'ok':6} {name}", flush=True)
        for text in wrong[:DIFFERENCES_SHOWN]:
            print(f"         {text}")

    def compare(self, directory: Path) -> tuple[View, list[str]]:
        reader = read_with_reader(directory)
        try:
            engine = View(self.engine.ask("read", directory))
        except EngineError as error:
            return reader, [str(error)]
        return reader, list(differences(reader, engine))

    def whole(self, name: str, directory: Path) -> None:
        """A log without damage."""
        wrong = self.compare(directory)[1]
        wrong += untruths(list(log_lines(directory)))
        wrong += index_untruths(directory)
        self.report(name, wrong)

    def damaged(self, name: str, directory: Path, writable: bool, quiet: bool = False) -> None:
        """A damaged log, before and after a writer has mended it."""
        before, wrong = self.compare(directory)
        if not wrong:
            wrong = [f"after mending: {text}" for text in self.mended(directory, before, writable)]
        self.report(name, wrong, quiet)

    def mended(self, directory: Path, before: View, writable: bool) -> Iterator[str]:
        try:
            answer = self.engine.ask("append", directory)
        except EngineError as error:
            yield str(error)
            return
        if bool(answer) == writable:
            yield f"the engine answers {answer}"
        after, wrong = self.compare(directory)
        yield from wrong
        if not writable or after.error:
            return
        for place, records in before.records.items():
            count = len(records)
            if after.records[place][:count] != records:
                yield f"{place}: {count} records are not as they were"
        for place, (_, end) in before.ends.items():
            new = [record["offset"] for record in after.records[place] if record["offset"] >= end]
            if not new:
                yield f"{place}: nothing was appended behind {end}"


def run(comparison: Comparison, quick: bool) -> None:
    logs = comparison.work / "logs"
    logs.mkdir()
    for case in CASES:
        comparison.engine.write(case, logs / case)
        comparison.whole(case, logs / case)
    comparison.engine.write("died again", logs / "died")
    comparison.whole("died again", logs / "died")
    comparison.report("reader.py --json", command_line(logs / "shapes"))

    for each in damages.listed():
        copy = comparison.work / "copy"
        shutil.copytree(logs / each.case, copy)
        each.change(damage.Files(copy))
        comparison.damaged(each.name, copy, each.writable)
        shutil.rmtree(copy)
    if not quick:
        at_every_byte(comparison, logs / "tiny")


def at_every_byte(comparison: Comparison, log: Path) -> None:
    """A flipped bit in every byte, and a cut at every byte, of each file of a small log."""
    for name, path, position in damage.at_every_byte(damage.Files(log)):
        for what in ("bit", "cut"):
            copy = comparison.work / "copy"
            shutil.copytree(log, copy)
            target = copy / path.relative_to(log)
            if what == "bit":
                damage.flip(target, position, position % 8)
            else:
                target.write_bytes(target.read_bytes()[:position])
            comparison.damaged(f"{what} at byte {position} of {name}", copy, True, quiet=True)
            shutil.rmtree(copy)
    print("       a flipped bit in each byte, a cut at each byte: listed is what failed")


def command_line(directory: Path) -> list[str]:
    """The program prints what its functions find."""
    program = [sys.executable, "-B", str(Path(__file__).with_name("reader.py"))]
    printed = subprocess.run(
        [*program, str(directory), "--json"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    found = json.loads(json.dumps(list(log_lines(directory))))
    return [] if [json.loads(line) for line in printed] == found else ["it prints something else"]


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare the reader with the engine.")
    parser.add_argument("program", type=Path, help="the engine's side")
    parser.add_argument("--quick", action="store_true", help="not at every byte")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        engine = Engine(arguments.program)
        comparison = Comparison(engine, Path(work))
        for check in selfcheck.CHECKS:
            check()
            comparison.report(f"reader: {check.__name__}", [])
        run(comparison, arguments.quick)
        engine.close()
    print(f"{comparison.passed} passed, {comparison.failed} failed")
    return 1 if comparison.failed else 0


if __name__ == "__main__":
    sys.exit(main())
