"""Which files count, and reading over damage (FORMAT.md, section 6)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path

from descriptions import Checkpoint, Topic
from fields import U64, Cursor, MalformedError
from segments import (
    CLOCK,
    FOOTER,
    JOURNAL_KINDS,
    RECORDS,
    TRUSTED_RECORDS,
    Frame,
    Record,
    Segment,
    clock_of,
    footer_of,
    frame_at,
    last_footer,
    read_header,
    records_of,
    seed_of,
)

SEGMENT_NAME = re.compile(r"p([0-9a-f]{4})-([0-9a-f]{16})-([0-9a-f]{8})\.seg")


@dataclass
class Damage:
    file: str
    base: int
    position: int
    end: int
    what: str


@dataclass
class Partition:
    """What the segments of one partition say, in order of the offsets."""

    number: int
    start: int = 0
    next: int = 0
    records: list[Record] = field(default_factory=list)
    gaps: list[tuple[int, int]] = field(default_factory=list)
    damage: list[Damage] = field(default_factory=list)

    def lose_up_to(self, offset: int) -> None:
        """The offsets from the next one to this one are lost; touching gaps are one gap."""
        if offset <= self.next:
            return
        if self.gaps and self.gaps[-1][1] == self.next:
            self.gaps[-1] = (self.gaps[-1][0], offset)
        else:
            self.gaps.append((self.next, offset))
        self.next = offset


def topic_from_headers(folder: Path) -> Topic | None:
    """What the segments still tell when TOPIC is damaged. The options are lost."""
    for path in sorted(folder.iterdir()):
        header = read_header(path.read_bytes()) if SEGMENT_NAME.fullmatch(path.name) else None
        if header is not None:
            name, identity, partitions = header.name, header.identity, header.partitions
            return Topic(folder.name, name, identity, partitions, None, None, "segments")
    return None


def segments_of(folder: Path, topic: Topic) -> list[Segment]:
    segments = []
    for path in sorted(folder.iterdir()):
        match = SEGMENT_NAME.fullmatch(path.name)
        if match is None:
            continue
        partition, base, generation = (int(digits, 16) for digits in match.groups())
        data, seed = path.read_bytes(), seed_of(topic.identity, partition, base, generation)
        segment = Segment(path.name, partition, base, generation, data, seed, read_header(data))
        if segment.header is not None and not segment.belongs(topic.identity):
            segment.header = None
        segment.footer = last_footer(segment)
        segments.append(segment)
    return segments


def counting(segments: list[Segment], topic: Topic) -> list[Segment]:
    """The segments of one partition that are read; each file gets its state."""
    chosen: list[Segment] = []
    rewritten_to = 0
    for segment in sorted(segments, key=lambda each: (each.base, -each.generation)):
        again = bool(chosen) and chosen[-1].base == segment.base
        if again or segment.base < rewritten_to:
            segment.state = "replaced"
            continue
        segment.state = "unsealed" if segment.footer is None else "sealed"
        if segment.generation > 0:
            rewritten_to = next_behind(segment, topic)
        chosen.append(segment)
    if chosen and is_unborn(chosen[-1], topic):
        while chosen and is_unborn(chosen[-1], topic):
            chosen.pop().state = "being made"
    elif chosen and chosen[-1].footer is None and chosen[-1].header is not None:
        chosen[-1].state = "active"
    return chosen


def next_behind(segment: Segment, topic: Topic) -> int:
    """The offset behind all that a rewritten segment stands for."""
    if segment.footer is not None:
        return segment.footer.next
    alone = Partition(segment.partition, segment.base, segment.base)
    SegmentReader(alone, replace(segment, clocks=[]), topic, U64).read()
    return alone.next


def is_unborn(segment: Segment, topic: Topic) -> bool:
    """What a crash leaves of a segment that was being made."""
    short = len(segment.data) <= 87 + len(topic.name.encode())
    return segment.header is None and (short or not any(segment.data))


def next_frame(segment: Segment, position: int) -> Frame | None:
    """Rules 1 and 2: the right frame to go on with when none stands at this byte."""
    if len(segment.data) >= position + 8:
        length = int.from_bytes(segment.data[position + 4 : position + 7], "little")
        frame = frame_at(segment, position + 8 + length)
        if length > 0 and frame is not None:
            return frame
    for start in range(position + 1, len(segment.data) - 7):
        frame = frame_at(segment, start)
        if frame is not None:
            return frame
    return None


def whole_once(segment: Segment, position: int, expected: int) -> tuple[int, int] | None:
    """Rule 3: where a damaged frame of records ends, and the offset after its records."""
    if len(segment.data) < position + 8:
        return None
    word = Cursor(segment.data, position + 4).uint(4)
    end = position + 8 + (word & 0xFFFFFF)
    if word >> 24 not in (RECORDS, TRUSTED_RECORDS) or end > len(segment.data):
        return None
    body = Cursor(segment.data[position + 8 : end])
    after = expected
    try:
        if segment.base + Cursor(body.data).varint() != expected:
            return None
        for record in records_of(word >> 24, body, segment.base):
            after = record.offset + 1
    except MalformedError:
        pass  # The records up to the bad byte are counted, and the first one in any case.
    return end, min(max(after, expected + 1), expected + end - position)


class SegmentReader:
    """Goes over the frames of one segment and the damage between them."""

    def __init__(self, partition: Partition, segment: Segment, topic: Topic, limit: int) -> None:
        self.partition = partition
        self.segment = segment
        self.start = 87 + len(topic.name.encode())
        # The base of the next segment: from there on nothing is lost by damage in this one.
        self.limit = limit
        # There was damage since the last records: an offset that is jumped over now was lost.
        self.after_damage = False
        # The offset behind what the damaged frames since then still tell of theirs.
        self.told = 0

    def damaged(self, position: int, end: int, what: str) -> None:
        self.partition.damage.append(
            Damage(self.segment.file, self.segment.base, position, end, what)
        )
        self.after_damage = True

    def go_on_at(self, offset: int) -> None:
        """The offset that stands next; what is jumped over was left out, or lost just before."""
        if self.after_damage:
            self.partition.lose_up_to(offset)
        self.partition.next = max(self.partition.next, offset)
        self.after_damage = False
        self.told = 0

    def read(self) -> None:
        size = len(self.segment.data)
        if self.segment.header is None:
            self.partition.damage.append(
                Damage(self.segment.file, self.segment.base, 0, min(self.start, size), "header")
            )
        position = self.start
        while position < size:
            frame = frame_at(self.segment, position)
            if frame is None:
                position = self.over_damage(position)
                continue
            what = self.take(frame)
            if what:
                self.damaged(position, frame.end, what)
            position = frame.end
        self.partition.lose_up_to(min(self.told, self.limit))

    def over_damage(self, position: int) -> int:
        """Rules 1 to 4: where reading goes on when no frame stands at this byte."""
        once = whole_once(self.segment, position, max(self.told, self.partition.next))
        if once is not None:
            self.told = once[1]
        following = next_frame(self.segment, position)
        if following is not None:
            self.damaged(position, following.position, "no frame")
            return following.position
        if once is not None:
            self.damaged(position, once[0], "last frame")
            return once[0]
        size = len(self.segment.data)
        self.damaged(position, size, "torn tail")
        return size

    def take(self, frame: Frame) -> str:
        """Reads one right frame; the answer is the damage found in it, or nothing."""
        try:
            if frame.kind == CLOCK:
                self.segment.clocks.append(clock_of(frame))
            elif frame.kind == FOOTER:
                self.go_on_at(footer_of(frame, self.segment.base).next)
            elif frame.kind in JOURNAL_KINDS:
                return "a frame of a journal"
            else:
                return self.take_records(frame)
        except MalformedError as error:
            return str(error)
        return ""

    def take_records(self, frame: Frame) -> str:
        """The records up to the first bad one, without those that go back over earlier ones."""
        count = 0
        for record in records_of(frame.kind, Cursor(frame.body), self.segment.base):
            if record.offset < self.partition.next:
                continue
            if count == 0:
                self.go_on_at(record.offset)
            count += 1
            self.partition.records.append(record)
            self.partition.next = record.offset + 1
        return "" if count else "no new records"


def read_partition(
    number: int, segments: list[Segment], topic: Topic, checkpoint: Checkpoint | None
) -> Partition:
    partition = Partition(number)
    files = [each for each in segments if each.partition == number]
    chosen = counting(files, topic)
    if chosen:
        partition.start = partition.next = chosen[0].base
    for segment, following in zip(chosen, [*chosen[1:], None]):
        partition.lose_up_to(segment.base)
        limit = U64 if following is None else following.base
        SegmentReader(partition, segment, topic, limit).read()
        if segment.state == "unsealed":
            # Its name is taken, so the next segment needs a higher one.
            partition.lose_up_to(segment.base + 1)
    unborn = [each for each in files if each.state == "being made"]
    for each in unborn:
        partition.damage.append(Damage(each.file, each.base, 0, len(each.data), "being made"))
    promised = [each.base for each in unborn]
    if checkpoint is not None:
        promised.append(checkpoint.partitions[number][0])
    partition.lose_up_to(max(promised, default=0))
    if not chosen:
        partition.start = partition.next
    return partition
