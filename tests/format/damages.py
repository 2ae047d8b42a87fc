"""The list of damages that the reader and the engine are compared on."""

from __future__ import annotations

import random
from collections.abc import Iterator

import craft
from craft import Row
from damage import (
    Change,
    Damage,
    Files,
    all_of,
    appended,
    bad_headers,
    bad_records,
    behind,
    cut,
    flip_in,
    footer_of_rewritten,
    foreign_names,
    in_file,
    moved_bytes,
    next_file,
    over,
    repeated_frame,
    replaced,
    rewritten,
    seems_to_hold_more,
    without,
    without_segments,
)
from segments import CLOCK, RECORDS

NOISE = random.Random(7).randbytes(5000)
SEGMENTS = ((0, "first"), (1, "middle"), (-1, "last"))
FRAMES = ((0, "first"), (5, "middle"), (-2, "last but one"), (-1, "last"))
PLACES = ((0, "sum"), (4, "length"), (7, "kind"), (8, "offset"), (-1, "end"))


def listed() -> Iterator[Damage]:
    yield from tails()
    yield from flips()
    yield from bytes_inside()
    yield from next_files()
    yield from headers()
    yield from files()
    yield from descriptions()
    yield from checkpoints()
    yield from newer()
    yield from frames_by_hand()
    yield from footers_by_hand()
    yield from rewritings()


def tails() -> Iterator[Damage]:
    for keep in (-1, -7, -40):
        yield Damage(f"torn tail, {-keep} bytes short", cut(-1, keep))
    yield Damage("only a header", cut(-1, 92))
    yield Damage("half a header", cut(-1, 50))
    yield Damage("an empty last file", cut(-1, 0))
    for length in (1, 8, 4096):
        yield Damage(f"{length} zeros appended", behind(-1, bytes(length)))
        yield Damage(f"{length} of noise appended", behind(-1, NOISE[:length]))
        yield Damage(f"{length} of 0xff appended", behind(-1, b"\xff" * length))
        yield Damage(f"{length} zeros behind a footer", behind(-2, bytes(length)))
        yield Damage(f"{length} of noise behind a footer", behind(0, NOISE[:length]))
    yield Damage("a frame repeated at the end", repeated_frame)


def flips() -> Iterator[Damage]:
    for segment, where in SEGMENTS:
        for frame, which in FRAMES:
            for place, part in PLACES:
                name = f"bit in the {part} of the {which} frame of the {where} segment"
                yield Damage(name, flip_in(segment, frame, place))
    yield Damage("bit of a batch", flip_in(0, 12, 30))
    yield Damage("two frames in a row", all_of(flip_in(1, 4, -1), flip_in(1, 5, -1)))
    yield Damage("the last two frames", all_of(flip_in(-1, -2, -1), flip_in(-1, -1, -1)))
    yield Damage("the last two lengths", all_of(flip_in(-1, -2, 4), flip_in(-1, -1, 4)))
    yield Damage("the last frame, then zeros", all_of(flip_in(-1, -1, -1), zeros_behind))
    yield Damage("bit in a gathered frame", flip_in(1, 0, 900), "gathered")
    yield Damage("bit in the last gathered frame", flip_in(-1, -1, -1), "gathered")
    yield Damage("bit in a big record", flip_in(0, 0, 9000), "big")
    yield Damage("bit in the length of a big record", flip_in(2, 0, 6), "big")
    for segment, where in SEGMENTS:
        for place, part in PLACES:
            name = f"bit in the {part} of a frame of the {where} segment, compacted"
            yield Damage(name, flip_in(segment, 1, place), "compacted again")
    yield Damage("bit in a rewritten footer", flip_in(3, -1, -6), "compacted again")


def zeros_behind(files: Files) -> None:
    path = files.path(files.segments[-1])
    path.write_bytes(path.read_bytes() + bytes(64))


def bytes_inside() -> Iterator[Damage]:
    for length in (1, 60, 300, 5000):
        yield Damage(f"{length} zeros over a middle segment", over(1, 100, bytes(length)))
        yield Damage(f"{length} of noise over a middle segment", over(1, 100, NOISE[:length]))
        yield Damage(f"{length} of noise over the last segment", over(-1, 100, NOISE[:length]))


def next_files() -> Iterator[Damage]:
    empty = next_file(lambda header: b"")
    yield Damage("an empty next file", empty)
    yield Damage("two empty next files", all_of(empty, next_file(lambda header: b"", later=5)))
    yield Damage("half a next header", next_file(lambda header: header[:40]))
    yield Damage("a next file of zeros", next_file(lambda header: bytes(4096)))
    yield Damage("a next header", next_file(lambda header: header))
    yield Damage("a next header with a flaw", next_file(lambda header: header[:-1] + b"\0"))
    yield Damage("a next file of noise", next_file(lambda header: NOISE))
    yield Damage("a next header, then zeros", next_file(lambda header: header + bytes(100)))
    torn = all_of(cut(-1, -9), next_file(lambda header: header))
    yield Damage("a tail lost before the next file", torn)


def headers() -> Iterator[Damage]:
    for number, which in SEGMENTS:
        yield Damage(f"header of the {which} segment", bad_headers(number))
        both = all_of(flip_in(number, 0, 9), bad_headers(number))
        yield Damage(f"header and frame of the {which} segment", both)
    yield Damage("all headers", bad_headers())


def files() -> Iterator[Damage]:
    for number, which in SEGMENTS:
        yield Damage(f"the {which} file missing", without_segments(number))
        yield Damage(f"the {which} file empty", cut(number, 0))
        yield Damage(f"the {which} file cut", cut(number, 300))
        yield Damage(f"the {which} file of zeros", over(number, -92, bytes(5000)))
    yield Damage("all files missing", without_segments())
    nothing = all_of(without_segments(), without("CHECKPOINT"))
    yield Damage("all files and CHECKPOINT missing", nothing)
    yield Damage("bytes of another segment", moved_bytes)
    yield Damage("names of others", foreign_names)


def descriptions() -> Iterator[Damage]:
    for name in ("TOPIC", "CHECKPOINT", "LOG"):
        yield Damage(f"{name}: first copy", in_file(name, 10))
        yield Damage(f"{name}: second copy", in_file(name, 60))
        yield Damage(f"{name}: both copies", in_file(name, 10, 60))
        yield Damage(f"{name}: length", in_file(name, 13))
        yield Damage(f"{name}: empty", replaced(name, lambda files: b""))
        yield Damage(f"{name}: missing", without(name))
    lost = in_file("TOPIC", 10, 60)
    yield Damage("TOPIC, four partitions", lost, "rotation")
    yield Damage("TOPIC and the first header", all_of(bad_headers(0), lost))
    yield Damage("TOPIC and all headers", all_of(bad_headers(), lost))
    yield Damage("TOPIC, and no segment", all_of(without_segments(), lost))
    yield Damage("TOPIC, and a torn tail", all_of(cut(-1, -5), lost))


def checkpoint(extra: int, version: int = 1, identity: int = 0) -> Change:
    """A checkpoint whose next offset is higher than the right one."""

    def make(files: Files) -> bytes:
        ends = [(files.next() + extra, 0)]
        return craft.checkpoint(files.topic.identity + identity, ends, version)

    return replaced("CHECKPOINT", make)


def checkpoints() -> Iterator[Damage]:
    yield Damage("a checkpoint behind the end", checkpoint(10))
    yield Damage("a checkpoint before the end", checkpoint(-10))
    yield Damage("a checkpoint of another topic", checkpoint(10, identity=1))
    yield Damage("a checkpoint behind a torn tail", all_of(checkpoint(0), cut(-1, -30)))
    yield Damage("a checkpoint and no segment", all_of(checkpoint(0), without_segments()))


def newer() -> Iterator[Damage]:
    """What a newer edgelog wrote stays as it is, except advice."""
    yield Damage("CHECKPOINT by a newer edgelog", checkpoint(10, version=2))
    log = replaced("LOG", lambda files: craft.description(b"EDGELOG1", bytes(16), 2))
    yield Damage("LOG by a newer edgelog", log, writable=False)
    topic = replaced("TOPIC", lambda files: craft.description(b"EDGETOP1", bytes(16), 2))
    yield Damage("TOPIC by a newer edgelog", topic, writable=False)
    yield Damage("a segment by a newer edgelog", newer_segment, writable=False)
    yield Damage("an unknown setting", setting(0x7FFF))
    yield Damage("an unknown setting that counts", setting(0x8000), writable=False)


def newer_segment(files: Files) -> None:
    last = files.segments[-1]
    files.save(last, files.header(last, version=2) + last.data[files.header_bytes() :])


def setting(tag: int) -> Change:
    """A setting in front of one that is known."""

    def make(files: Files) -> bytes:
        return craft.topic(files.topic.identity, files.topic.name, {tag: 77, 6: 2048})

    return replaced("TOPIC", make)


def frames_by_hand() -> Iterator[Damage]:
    def add(name: str, *rows: tuple[int, list[Row]]) -> Damage:
        """Frames whose first offset is so far behind the end, with these rows."""

        def change(writer: craft.Writer, at: int) -> None:
            for offset, inside in rows:
                writer.records(at + offset, *inside)

        return Damage(name, appended(change))

    a, b = Row(b"a"), Row(b"b")
    yield add("records by hand", (0, [Row(b"", b""), b]))
    yield add("offsets left out", (0, [Row(b"a", skip=5), Row(b"b", skip=300)]))
    yield add("offsets jump", (9, [a]))
    yield add("offsets jump twice", (9, [a]), (10, [b]), (21, [a]), (22, [b]))
    yield add("offsets go back", (-3, [a]), (0, [b]))
    yield add("offsets go back and over", (-1, [a, b]), (1, [a]))
    yield add("offsets go back at the end", (-3, [a]))
    yield add("a frame without records", (0, []), (0, [b]))
    yield Damage("a damaged frame that seems to hold more", appended(seems_to_hold_more))
    yield Damage("the first record of a frame is bad", appended(bad_records(0)))
    yield Damage("the second record of a frame is bad", appended(bad_records(1)))
    damaged_before = all_of(appended(bad_records(1)), flip_in(-1, -1, -1))
    yield Damage("damage, and the second record of a frame is bad", damaged_before)
    yield Damage("a damaged frame before a clock", appended(clock_behind_damage))
    short = appended(lambda writer, at: writer.add(RECORDS, b"\xff"))
    yield Damage("a frame of nonsense at the end", short)
    yield Damage("a clock", appended(lambda writer, at: writer.clock().records(at, b)))
    clock = appended(lambda writer, at: writer.add(CLOCK, b"1").records(at, b))
    yield Damage("a short clock", clock)


def clock_behind_damage(writer: craft.Writer, at: int) -> None:
    """A clock tells no offset, so what the damaged frame held counts as given out."""
    writer.records(at, Row(b"a"), Row(b"b"))
    writer.data = writer.data[:-1] + b"x"
    writer.clock()


def footers_by_hand() -> Iterator[Damage]:
    yield Damage("a footer, no next file", appended(lambda writer, at: writer.footer(at, 22)))
    yield Damage("a higher footer", appended(lambda writer, at: writer.footer(at + 5, 22)))
    more = appended(lambda writer, at: writer.footer(at, 22).records(at, Row(b"b")))
    yield Damage("records behind a footer", more)
    yield Damage(
        "a footer twice", appended(lambda writer, at: writer.footer(at, 22).footer(at, 22))
    )
    footer = appended(lambda writer, at: writer.footer(at, 22))
    yield Damage("a footer, then zeros", all_of(footer, zeros_behind))


def rewritings() -> Iterator[Damage]:
    yield Damage("a rewritten segment", rewritten(1, 2, [20, 21, 30]))
    yield Damage("a rewritten first segment", rewritten(0, 1, [5, 6]))
    yield Damage("a rewritten segment without records", rewritten(1, 2, []))
    yield Damage("two segments rewritten as one", rewritten(0, 2, [3, 25]))
    yield Damage("a rewriting that was not finished", rewritten(1, 2, [20], finished=False))
    alone = all_of(rewritten(1, 2, [20, 30]), without_segments(1))
    yield Damage("a rewritten segment alone", alone)
    yield Damage("a rewritten segment with a bad footer", all_of(alone, footer_of_rewritten))
