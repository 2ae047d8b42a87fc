"""What happens to logs: each damage changes the files of a copy in one way."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

import craft
from craft import Row, Writer
from descriptions import Topic, read_topic
from recovery import segments_of
from segments import RECORDS, Frame, Segment, frame_at, seed_of

Change = Callable[["Files"], None]


class Files:
    """The files of a log's first topic and its partition 0, from the oldest segment on."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = min(root.glob("t????????"))
        topic = read_topic(self.folder)
        assert topic is not None
        self.topic: Topic = topic
        every = segments_of(self.folder, topic)
        self.segments = [segment for segment in every if segment.partition == 0]

    def path(self, segment: Segment) -> Path:
        return self.folder / segment.file

    def frames(self, segment: Segment) -> list[Frame]:
        frames = []
        position = self.header_bytes()
        while (frame := frame_at(segment, position)) is not None:
            frames.append(frame)
            position = frame.end
        return frames

    def header_bytes(self) -> int:
        return 87 + len(self.topic.name.encode())

    def new_segment(self, base: int, generation: int = 0) -> Segment:
        seed = seed_of(self.topic.identity, 0, base, generation)
        name = f"p0000-{base:016x}-{generation:08x}.seg"
        return Segment(name, 0, base, generation, b"", seed, None)

    def header(self, segment: Segment, version: int = 1) -> bytes:
        topic = self.topic
        return craft.header(segment, topic.partitions, topic.name.encode(), topic.identity, version)

    def next(self) -> int:
        """The next offset of a log without damage, in terms of its checkpoint."""
        data = (self.folder / "CHECKPOINT").read_bytes()
        return int.from_bytes(data[60:68], "little")

    def save(self, segment: Segment, data: bytes) -> None:
        self.path(segment).write_bytes(data)


@dataclass
class Damage:
    name: str
    change: Change
    case: str = "small"
    # Whether opening for writing mends it: what a newer edgelog wrote stays as it is.
    writable: bool = True


def flip(path: Path, position: int, bit: int = 0) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 1 << bit
    path.write_bytes(data)


def flip_in(segment: int, frame: int, place: int) -> Change:
    """Flips a bit of a frame; a negative place counts from its end."""

    def change(files: Files) -> None:
        chosen = files.segments[segment]
        found = files.frames(chosen)[frame]
        flip(files.path(chosen), (found.position if place >= 0 else found.end) + place)

    return change


def cut(segment: int, keep: int) -> Change:
    """Cuts a file; a negative number counts from its end."""

    def change(files: Files) -> None:
        chosen = files.segments[segment]
        files.save(chosen, chosen.data[:keep])

    return change


def behind(segment: int, data: bytes) -> Change:
    return lambda files: files.save(files.segments[segment], files.segments[segment].data + data)


def over(segment: int, place: int, data: bytes) -> Change:
    """Writes over bytes behind the header."""

    def change(files: Files) -> None:
        chosen = files.segments[segment]
        start = files.header_bytes() + place
        end = min(start + len(data), len(chosen.data))
        files.save(chosen, chosen.data[:start] + data[: end - start] + chosen.data[end:])

    return change


def next_file(make: Callable[[bytes], bytes], later: int = 0) -> Change:
    """A new segment behind the last one; `make` gets its right header."""

    def change(files: Files) -> None:
        segment = files.new_segment(files.next() + later)
        files.save(segment, make(files.header(segment)))

    return change


def bad_headers(*numbers: int) -> Change:
    def change(files: Files) -> None:
        for number in numbers or range(len(files.segments)):
            flip(files.path(files.segments[number]), 30)

    return change


def in_file(name: str, *places: int) -> Change:
    """Flips bits of a description file; a place is a hundredth of its length."""

    def change(files: Files) -> None:
        path = files.root / name if name == "LOG" else files.folder / name
        for place in places:
            flip(path, path.stat().st_size * place // 100)

    return change


def replaced(name: str, make: Callable[[Files], bytes]) -> Change:
    def change(files: Files) -> None:
        path = files.root / name if name == "LOG" else files.folder / name
        path.write_bytes(make(files))

    return change


def without(*names: str) -> Change:
    def change(files: Files) -> None:
        for name in names:
            (files.root / name if name == "LOG" else files.folder / name).unlink()

    return change


def without_segments(*numbers: int) -> Change:
    def change(files: Files) -> None:
        for number in numbers or range(len(files.segments)):
            files.path(files.segments[number]).unlink()

    return change


def all_of(*changes: Change) -> Change:
    def change(files: Files) -> None:
        for each in changes:
            each(files)

    return change


def appended(write: Callable[[Writer, int], object]) -> Change:
    """Frames by hand behind the last segment; `write` gets the next offset too."""

    def change(files: Files) -> None:
        last = files.segments[-1]
        writer = Writer(last, last.data)
        write(writer, files.next())
        files.save(last, writer.data)

    return change


def rewritten(base: int, next_segment: int, offsets: list[int], finished: bool = True) -> Change:
    """A rewriting of the segments below one, as a compaction leaves it."""

    def change(files: Files) -> None:
        segment = files.new_segment(files.segments[base].base, 1)
        writer = Writer(segment, files.header(segment))
        at = segment.base
        rows = []
        for offset in offsets:
            rows.append(Row(b"kept", b"key", skip=offset - at))
            at = offset + 1
        writer.records(segment.base, *rows)
        if finished:
            writer.footer(files.segments[next_segment].base, len(rows))
        else:
            segment.file += ".tmp"
        files.save(segment, writer.data)

    return change


def foreign_names(files: Files) -> None:
    for name in ["t1", "T00000009", "t0000000g", "README", "t00000009.tmp", "LOG.tmp"]:
        (files.root / name).write_bytes(b"EDGELOG1")
    (files.root / "t00000abc").mkdir()
    for name in ["p0000-0000000000000000-00000000.SEG", "TOPIC.tmp", "CHECKPOINT.old"]:
        (files.folder / name).write_bytes(b"EDGESEG1")
    shutil.copy(files.path(files.segments[0]), files.folder / "p0fff-0000000000000000-00000000.seg")
    shutil.copy(files.path(files.segments[1]), files.folder / (files.segments[1].file + ".tmp"))


def moved_bytes(files: Files) -> None:
    """The bytes of a segment under the name of another are no frames there."""
    files.save(files.segments[1], files.segments[2].data)


def repeated_frame(files: Files) -> None:
    """A frame's bytes once more at the end are no frame there."""
    last = files.segments[-1]
    frame = files.frames(last)[-1]
    files.save(last, last.data + last.data[frame.position : frame.end])


def bad_records(good: int) -> Callable[[Writer, int], Writer]:
    """A right frame with some good records and a bad one behind them, and a good frame."""

    def write(writer: Writer, at: int) -> Writer:
        body = craft.records_body(at - writer.segment.base, [Row(b"good")] * good)
        return writer.add(RECORDS, body + b"\xff").records(at + 2, Row(b"behind"))

    return write


def seems_to_hold_more(writer: Writer, at: int) -> None:
    """A value whose bytes look like records comes to light when its length is damaged."""
    length_at = (
        len(writer.data)
        + len(craft.frame(0, 0, RECORDS, b""))
        + len(craft.records_body(at - writer.segment.base, []))
        + 1
    )
    writer.records(at, Row(b"\x02\0" * 10)).records(at + 1, Row(b"b")).records(at + 2, Row(b"c"))
    data = bytearray(writer.data)
    assert data[length_at] == 20
    data[length_at] = 4
    writer.data = bytes(data)


def footer_of_rewritten(files: Files) -> None:
    """Flips a bit in the footer of a segment of a higher generation."""
    path = next(files.folder.glob("*-00000001.seg"))
    flip(path, path.stat().st_size - 6)


def at_every_byte(files: Files) -> Iterator[tuple[str, Path, int]]:
    """Every byte of every file, for damage at each: the file's name, its path, the place."""
    for path in [files.root / "LOG", *sorted(files.folder.iterdir())]:
        for position in range(path.stat().st_size):
            yield path.name, path, position
