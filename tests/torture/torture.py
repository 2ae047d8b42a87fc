"""Several processes in three languages on one log, killed and stopped at random; then proof that
nothing was lost. See README.md; ci/torture builds what this needs.

usage: torture.py [--seconds N] [--seed N] [--keep]
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from types import ModuleType

from history import History, Life
from selfcheck import unnoticed

HERE = Path(__file__).resolve().parent
BUILT = Path(os.environ["EDGELOG_TORTURE_BUILT"])
COPIES = 2
# Where there is one, it has a starter for each kind of source, and every second actor is started
# by it: so tests/gateway/run lets processes under an emulator work beside those of this machine.
STARTERS = os.environ.get("EDGELOG_TORTURE_STARTERS")
# How many times longer than usual the driver waits: an emulated process takes seconds to start.
PATIENCE = float(os.environ.get("EDGELOG_TORTURE_PATIENCE", "1"))


def command_of(source: Path, copy: int) -> list[str]:
    if STARTERS and copy % 2:
        return [f"{STARTERS}/{source.suffix[1:]}", str(source)]
    if source.suffix == ".c":
        return [str(BUILT / source.stem)]
    return [sys.executable if source.suffix == ".py" else "node", str(source)]


class Running:
    """One actor: its process now, and the lives before."""

    def __init__(self, source: Path, copy: int, directory: Path, dice: random.Random) -> None:
        self.command = command_of(source, copy)
        self.name = f"{source.stem}-{source.suffix[1:]}{copy}"
        self.directory = directory
        self.dice = dice
        self.lives: list[Life] = []
        self.stopped_ns = 0
        self.ready_at = 0.0
        self.start()

    def start(self) -> None:
        life = Life(self.name, len(self.lives))
        self.lives.append(life)
        file = f"{self.name}.{life.number}"
        self.stderr = self.directory / "stderr" / file
        self.journal = journal = self.directory / "journal" / file
        journal.touch()
        words = [self.directory / "log", journal, self.name, life.number, self.dice.getrandbits(31)]
        with self.stderr.open("wb") as stderr:
            self.process = subprocess.Popen(
                [*self.command, *map(str, words)], stdin=subprocess.DEVNULL, stderr=stderr
            )

    def is_at_work(self) -> bool:
        """Whether its process has appended something."""
        return b"\nack " in self.journal.read_bytes()

    def kill(self) -> None:
        self.lives[-1].was_killed = True
        self.process.kill()
        self.bury()

    def bury(self) -> None:
        life = self.lives[-1]
        life.exit_code = self.process.wait()
        life.stderr = self.stderr.read_text(errors="replace")[-2000:]

    def stop(self) -> None:
        self.stopped_ns = time.monotonic_ns()
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> tuple[int, int]:
        """The time in which it stood still, and for which it may be felt."""
        self.process.send_signal(signal.SIGCONT)
        stopped_ns, self.stopped_ns = self.stopped_ns, 0
        return stopped_ns, time.monotonic_ns() + 200_000_000


class Machine(threading.Thread):
    """Notes when the machine itself was slow: how long a small sync beside the log took, and how
    much longer than it wanted somebody slept who waits for nothing else.
    """

    TOLD_NS = 50_000_000

    def __init__(self, directory: Path) -> None:
        super().__init__(daemon=True)
        self.directory = directory
        self.slow: list[tuple[int, int]] = []
        self.is_over = threading.Event()

    def run(self) -> None:
        name = self.directory / "probe"
        end = time.monotonic_ns()
        while not self.is_over.wait(0.01):
            start = time.monotonic_ns()
            if start - end > self.TOLD_NS:
                self.slow.append((end, start))
            file = os.open(name, os.O_WRONLY | os.O_CREAT)
            os.write(file, b"x")
            os.fsync(file)
            os.close(file)
            name.unlink()
            end = time.monotonic_ns()
            if end - start > self.TOLD_NS:
                self.slow.append((start, end))


class Torture:
    def __init__(self, directory: Path, seed: int) -> None:
        self.directory = directory
        self.dice = random.Random(seed)
        for name in ("journal", "stderr"):
            (directory / name).mkdir(parents=True)
        self.stops = (directory / "stops").open("w")
        self.machine = Machine(directory)
        self.machine.start()
        sources = sorted(one for one in (HERE / "actors").iterdir() if one.suffix in SUFFIXES)
        self.actors: list[Running] = []
        for copy in range(COPIES):
            if copy:
                # A language is busy while it starts: all at once would be in each other's way.
                time.sleep(0.7)
            self.actors += [Running(source, copy, directory, self.dice) for source in sources]
        self.kills = 0
        self.stop_count = 0

    def run(self, seconds: float) -> None:
        """Until the time is over, or one dies by itself."""
        end = time.monotonic() + seconds
        lazy = self.actors if STARTERS else []
        while time.monotonic() < end or (lazy and time.monotonic() < end + 2 * seconds):
            lazy = [actor for actor in lazy if not actor.is_at_work()]
            time.sleep(PATIENCE * self.dice.uniform(0.05, 0.35))
            if not self.step():
                return

    def step(self) -> bool:
        now = time.monotonic()
        for actor in self.actors:
            if actor.lives[-1].was_killed and now >= actor.ready_at:
                actor.start()
            elif actor.stopped_ns and now >= actor.ready_at:
                print(*actor.go_on(), file=self.stops)
            elif not actor.lives[-1].was_killed and actor.process.poll() is not None:
                return False
        victim = self.dice.choice(self.actors)
        if victim.lives[-1].was_killed:
            return True
        if STARTERS and not victim.is_at_work() and self.dice.random() < 0.8:
            # It would hardly ever get there.
            return True
        if victim.stopped_ns:
            # Also one that is stopped can be killed.
            print(*victim.go_on(), file=self.stops)
            self.kill(victim)
        elif self.dice.random() < 0.6:
            self.kill(victim)
        elif not any(actor.stopped_ns for actor in self.actors) and self.dice.random() < 0.5:
            victim.stop()
            self.stop_count += 1
            victim.ready_at = now + self.dice.choice([0.1, 0.3, 1.2])
        return True

    def kill(self, victim: Running) -> None:
        victim.kill()
        self.kills += 1
        victim.ready_at = time.monotonic() + self.dice.choice([0, 0.2])

    def finish(self) -> None:
        for actor in self.actors:
            if actor.stopped_ns:
                print(*actor.go_on(), file=self.stops)
        self.stops.close()
        for actor in self.actors:
            if not actor.lives[-1].was_killed:
                actor.process.terminate()
        for actor in self.actors:
            if not actor.lives[-1].was_killed:
                try:
                    actor.process.wait(15)
                except subprocess.TimeoutExpired:
                    actor.process.send_signal(signal.SIGABRT)
                actor.bury()
        (self.directory / "end").write_text(str(time.monotonic_ns()))
        self.machine.is_over.set()
        self.machine.join()
        lines = [f"{start} {end}\n" for start, end in self.machine.slow]
        (self.directory / "slow").write_text("".join(lines))

    def end(self) -> None:
        for actor in self.actors:
            actor.process.kill()
            actor.process.wait()


SUFFIXES = (".c", ".py", ".mjs")


def load_checks() -> list[ModuleType]:
    found = []
    for source in sorted((HERE / "checks").glob("*.py")):
        spec = importlib.util.spec_from_file_location(source.stem, source)
        assert spec
        assert spec.loader
        module = importlib.util.module_from_spec(spec)
        # A dataclass looks its module up.
        sys.modules[source.stem] = module
        spec.loader.exec_module(module)
        found.append(module)
    return found


def tell(torture: Torture, history: History) -> None:
    acks = [ack for life in history.lives for ack in life.acks]
    records = sum(ack.count for ack in acks)
    calls = [call for life in history.lives for call in life.calls]
    kinds = Counter(call.kind for call in calls)
    free = [call for call in calls if call.kind != "busy"]
    free = [call for call in free if not history.was_stopped(call.start_ns, call.end_ns)]
    slowest = max(free, key=lambda call: call.end_ns - call.start_ns, default=None)
    print(
        f"{len(history.lives)} lives, {torture.kills} kills, {torture.stop_count} stops, "
        f"{len(acks)} appends of {records} records acknowledged, "
        f"{kinds['busy']} BUSY"
    )
    compactions = [pair for life in history.lives for pair in life.removed]
    went = Counter[str]()
    for topic, count in compactions:
        went[topic] += count
    print(f"{len(compactions)} compactions when asked and in loops: {dict(went)} records went")
    for group in history.groups.values():
        took = [one for record in group.records.values() for one in record.took]
        again = sum(one.counts and one.deliveries > 1 for one in took)
        copies = sum(map(len, group.copies.values()))
        print(
            f"group {group.name}: {len(took)} deliveries of {len(group.records)} records, "
            f"{again} again, {copies} copies of {len(group.copies)} that were given up"
        )
    for order in history.orders.values():
        held = {act.epoch for part in order.parts for act in part.acts() if act.is_held}
        fences = sum(len(part.fences) for part in order.parts)
        tried = order.tried
        print(
            f"group {order.name}, in order: {len(held - {0})} leases, {fences} times fenced, "
            f"{tried['joined']} joins, {tried['released']} times given back, "
            f"{tried['pauses']} pauses, {tried['hangs']} hangs"
        )
    if slowest:
        print(f"the slowest while none was stopped: {slowest.name}, {slowest.ms():.0f} ms")
    else:
        print("no call took 300 ms while none was stopped")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "little"))
    parser.add_argument("--keep", action="store_true", help="keep the directory in any case")
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}, {arguments.seconds:.0f} s", flush=True)
    directory = Path(tempfile.mkdtemp(prefix="run.", dir=BUILT))
    torture = Torture(directory, arguments.seed)
    try:
        torture.run(arguments.seconds)
        torture.finish()
    finally:
        torture.end()
    lives = {f"{one}".replace("/", "."): one for actor in torture.actors for one in actor.lives}
    history = History(directory, lives)
    tell(torture, history)
    checks = load_checks()
    found = [f"{check.__name__}: {text}" for check in checks for text in check.check(history)]
    found = found or unnoticed(history, checks)
    for text in found[:50]:
        print(f"FAILED  {text}"[:1000])
    if found:
        print(f"{len(found)} failures; seed {arguments.seed}; kept: {directory}")
    elif not arguments.keep:
        shutil.rmtree(directory)
    print(f"{0 if found else 1} passed, {int(bool(found))} failed")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
