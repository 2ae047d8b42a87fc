"""Cuts the power of emulated boards while programs work on a log in their flash, and looks at what
is left. See README.md; ci/power builds what this needs.

usage: power.py BUILT [--cuts N] [--seed N] [--victim NAME] [--keep] BOARD...
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from board import MOUNTS, Board, Boot
from checks import check
from history import History
from selfcheck import unnoticed

HERE = Path(__file__).resolve().parent
LOG = "/mnt/log"
# So many cuts one flash gets, before there is a new one; fewer where not all victims came else.
CUTS_OF_A_FLASH = range(3, 9)
# What a program that says `synced` too early leaves undone: what is with the kernel is on the flash
# at once with jffs2, and with others not.
LIES = {"jffs2": "buffered", "ubifs": "written"}
# So many cuts may pass before a lie is found out.
LIE_CUTS = 10
# After so many failures a board is given up.
FAILED_MAX = 8
# The power goes within so many operations of the work, as powers of two. A flash is not filled at
# once.
OPERATIONS = (0.0, 11.0)
OPERATIONS_OF = {"full": (8.0, 13.5)}


@dataclass
class Cut:
    """When the power goes: inside the so many-th operation of the flash from the mount or from the
    victim's start on, or so long after that start."""

    where: str
    count: int
    dice: int

    def __str__(self) -> str:
        if self.where == "time":
            return f"{self.count} ms after the start"
        return f"in operation {self.count} from the {self.where} on"


def some_cut(victim: str, dice: random.Random) -> Cut:
    number = dice.random()
    seed = dice.randrange(1, 1 << 32)
    if number < 0.15:
        return Cut("mount", int(2 ** dice.uniform(0, 7)), seed)
    if number < 0.25:
        return Cut("time", int(2 ** dice.uniform(3, 11)), seed)
    return Cut("work", int(2 ** dice.uniform(*OPERATIONS_OF.get(victim, OPERATIONS))), seed)


def job_of(file_system: str, victim: str, words: str, cut: Cut, life: int, seed: int) -> list[str]:
    """What the board is to do: look at what the last cut left, then work until the next."""
    arm = [f"set dice {cut.dice}", f"set cut {cut.count}"]
    random_bytes = random.Random(seed).randbytes(32).hex()
    return [
        # Early in 1970, as a clock without a battery has it, but not before it was switched on.
        "clock 300",
        f"random {random_bytes}",
        *(arm if cut.where == "mount" else []),
        *MOUNTS[file_system],
        f"run /look {LOG} {life} {seed}",
        *(arm if cut.where == "work" else []),
        *([f"run /{victim} {LOG} {life} {seed} {words}".strip()] if victim else []),
        "set cut 0",
        "umount",
        "counts end",
    ]


class Flash:
    """One flash from new on, with one victim."""

    def __init__(self, board: Board, victim: str, words: str, dice: random.Random) -> None:
        self.board = board
        self.victim = victim
        self.words = words
        self.dice = dice
        self.history = History(check)
        self.images: list[bytes] = []
        self.boots: list[Boot] = []
        board.erase()

    def start(self, cut: Cut, victim: str) -> tuple[Boot, list[str]]:
        life, seed = self.history.life + 1, self.dice.randrange(1 << 32)
        job = job_of(self.board.file_system, victim, self.words, cut, life, seed)
        self.images = [*self.images[-1:], bytes(self.board.memory[self.board.flash])]
        by_time = cut.where == "time"
        boot = self.board.boot(job, cut.count if by_time else 0, "RAN /look" if by_time else "")
        self.boots.append(boot)
        faults = list(self.history.take(boot.lines))
        if boot.end not in ("cut", "killed", "done"):
            faults.append(f"the board is {boot.end}: {boot.console[-2000:]}")
        return boot, faults


class Run:
    """All that is done with one board."""

    def __init__(self, board: Board, seed: int, kept: Path) -> None:
        self.board = board
        self.seed = seed
        self.kept = kept
        self.dice = random.Random(f"{seed} {board.name}")
        self.ends: Counter[str] = Counter()
        self.looks = self.records = self.failed = 0
        self.cuts_of: Counter[str] = Counter()

    def say(self, text: str) -> None:
        print(f"{self.board.name}: {text}", flush=True)

    def cut_all(self, victims: list[str], cuts: int) -> None:
        least, most = min(CUTS_OF_A_FLASH), max(CUTS_OF_A_FLASH)
        at_once = max(least, min(most, cuts // len(victims)))
        done = 0
        left: list[str] = []
        while done < cuts and self.failed < FAILED_MAX:
            left = left or self.dice.sample(victims, len(victims))
            done += self.one_flash(left.pop(), min(at_once, cuts - done))

    def one_flash(self, victim: str, cuts: int) -> int:
        """A new flash, so many cuts, and a last look."""
        flash = Flash(self.board, victim, "", self.dice)
        for number in range(cuts + 1):
            cut = some_cut(victim, self.dice)
            if number == cuts:
                cut = Cut("never", 0, 1)
            boot, faults = flash.start(cut, victim if number < cuts else "")
            if number < cuts:
                self.ends[boot.end] += 1
                self.cuts_of[victim] += 1
            if faults:
                self.keep(flash, number, cut, faults)
                break
        self.looks += flash.history.looks
        self.records += flash.history.records_checked
        return max(1, number)

    def keep(self, flash: Flash, number: int, cut: Cut, faults: list[str]) -> None:
        """The flash as it was found, and before the cut that made it so; and all that was told."""
        self.failed += 1
        name = f"{self.board.name}-{flash.victim}-{self.seed}-{self.failed}"
        self.kept.mkdir(parents=True, exist_ok=True)
        for image, when in zip(reversed(flash.images), ("found", "before"), strict=False):
            (self.kept / f"{name}.{when}").write_bytes(image)
        with (self.kept / f"{name}.told").open("w") as file:
            for life, boot in enumerate(flash.boots, 1):
                file.write(f"---- life {life}: {boot.end}\n")
                file.writelines(f"{line}\n" for line in boot.lines)
                file.write(boot.console)
            file.writelines(f"WRONG {fault}\n" for fault in faults)
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        self.say(f"FAILED {flash.victim}, cut {number}, then {cut}: {faults[0]}{more}; {name}")

    def find_lie(self) -> bool:
        """Proof that a loss would be seen: a program that says `synced` of what is not."""
        lie = LIES[self.board.file_system]
        flash = Flash(self.board, "liar", lie, self.dice)
        for number in range(1, LIE_CUTS + 1):
            cut = Cut("time", self.dice.randrange(100, 400), 1)
            _, faults = flash.start(cut, "liar")
            wrong = [fault for fault in faults if "was promised" in fault]
            if wrong:
                self.say(f"a lie ({lie} as synced) was found out by cut {number - 1}: {wrong[0]}")
                return True
            if faults:
                self.keep(flash, number, cut, faults)
                return False
        self.failed += 1
        self.say(f"FAILED: a lie ({lie} as synced) was not found out in {LIE_CUTS} cuts")
        return False


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("built", type=Path)
    parser.add_argument("boards", nargs="+")
    parser.add_argument("--cuts", type=int, default=40)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--victim", action="append")
    words = parser.parse_args()
    victims = words.victim or sorted(path.stem for path in (HERE / "victims").glob("*.c"))
    victims = [victim for victim in victims if victim != "liar"]
    if missed := unnoticed():
        print("\n".join(missed))
        return 1
    failed = cuts = 0
    for name in words.boards:
        started = time.monotonic()
        # In memory, where there is some: it is written anew for each cut.
        shared = "/dev/shm" if Path("/dev/shm").is_dir() else None
        with tempfile.TemporaryDirectory(prefix="edgelog-power-", dir=shared) as folder:
            board = Board(name, words.built, Path(folder))
            run = Run(board, words.seed, words.built / "failed")
            run.find_lie()
            run.cut_all(victims, words.cuts)
        failed += run.failed
        cuts += run.ends.total()
        ends = ", ".join(f"{count} {end}" for end, count in sorted(run.ends.items()))
        run.say(
            f"{run.ends.total()} cycles ({ends}), {run.looks} looks at {run.records} promises, "
            f"{run.failed} failed, seed {words.seed}, {time.monotonic() - started:.0f} s"
        )
    # For whoever counts tests.
    print(
        f"{cuts} passed, {failed} failed" if not failed else f"{failed} failed, seed {words.seed}"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
