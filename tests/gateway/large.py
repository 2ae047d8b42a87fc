"""large.py DIRECTORY: a log in which 32 bits are not enough, made from FORMAT.md alone.

Its topic "large" has one segment of more than 4 GiB, with the last four offsets below 2^32, and one
without a record that starts at 2^32. The large file has holes, so it takes no room.
"""

import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "format"))

import craft
from segments import FOOTER, RECORDS, Segment, seed_of

IDENTITY = 1234567890
NAME = "large"
WALL_MS = 1_700_000_000_000
FIRST, NEXT = 2**32 - 4, 2**32
# Of the frames: around 2 GiB and 4 GiB.
POSITIONS = [87 + len(NAME), 2**31 - 20, 2**32 - 20, 2**32 + 12345]


def segment(base: int) -> Segment:
    seed = seed_of(IDENTITY, 0, base, 0)
    return Segment(f"p0000-{base:016x}-00000000.seg", 0, base, 0, b"", seed, None)


def footer_body(entries: list[tuple[int, int]]) -> bytes:
    numbers = [NEXT - FIRST, len(entries), 0, WALL_MS, WALL_MS, 0, len(entries)]
    offset, position = FIRST, 0
    for entry in entries:
        numbers += [entry[0] - offset, entry[1] - position, WALL_MS]
        offset, position = entry
    body = b"".join(map(craft.varint, numbers))
    return body + struct.pack("<I", 8 + len(body) + 4)


def main(directory: Path) -> None:
    topic = directory / "t00000001"
    topic.mkdir(parents=True)
    (directory / "LOG").write_bytes(craft.description(b"EDGELOG1", struct.pack("<QQ", 1, WALL_MS)))
    (topic / "TOPIC").write_bytes(craft.topic(IDENTITY, NAME, {6: 2**40}))
    large, active = segment(FIRST), segment(NEXT)
    entries = list(zip(range(FIRST, NEXT), POSITIONS))
    with (topic / large.file).open("wb") as file:
        file.write(craft.header(large, 1, NAME.encode(), IDENTITY))
        for offset, position in entries:
            value = struct.pack("<Q", offset)
            body = craft.records_body(offset - FIRST, [craft.Row(value)], WALL_MS)
            file.seek(position)
            file.write(craft.frame(large.seed, position, RECORDS, body))
        position = POSITIONS[-1] + 100
        file.seek(position)
        file.write(craft.frame(large.seed, position, FOOTER, footer_body(entries)))
    (topic / active.file).write_bytes(craft.header(active, 1, NAME.encode(), IDENTITY))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
