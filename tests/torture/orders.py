"""What the journals say of ordered groups: who had which partition, when, and under which epoch."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from groups import KINDS, ORDERS, Place, consumer_of, life_of, place_of

ORDERED = {name: kind for name, kind in KINDS.items() if kind.is_ordered}
PARTITIONS = 8
TAKES = ("due", "new", "own")


@dataclass(frozen=True)
class Handle:
    """A consumer from when it joins until it closes, or joins again."""

    who: str
    number: int

    @property
    def consumer(self) -> str:
        return consumer_of(self.who)

    def __str__(self) -> str:
        return f"{self.who}#{self.number}"


@dataclass(frozen=True)
class Act:
    """Something that a handle got, did or was told of a partition. What: due, new, own, of a record
    that it got; ack, nack, unnack, extend, upto; has, of the partition as a whole; fenced.
    """

    handle: Handle
    what: str
    start_ns: int
    # Infinite if nobody knows what came of it.
    end_ns: float
    place: Place
    # 0: not known.
    epoch: int = 0
    deliveries: int = 0
    # As in groups.Settled; of upto: how many, or "?" or "f".
    outcome: str = ""

    def __str__(self) -> str:
        words = [self.what, self.outcome, str(self.place), f"by {self.handle}"]
        words.append(f"delivery {self.deliveries}, epoch {self.epoch}")
        words.append(f"{self.start_ns / 1e9:.4f}-{self.end_ns / 1e9:.4f}")
        return f"[{' '.join(word for word in words if word)}]"

    @property
    def may_be_done(self) -> bool:
        return self.outcome not in ("a", "u", "n", "f", "0")

    @property
    def is_done(self) -> bool:
        return self.may_be_done and self.outcome != "?"

    @property
    def is_held(self) -> bool:
        """It shows that the handle had the partition."""
        return self.what in (*TAKES, "has") or self.outcome not in ("f", "?")


@dataclass(frozen=True)
class Let:
    """Somebody may give up a partition, or all, or is known to be live for less long."""

    start_ns: int
    partition: int | None


@dataclass
class Part:
    """A partition of a group."""

    takes: list[Act] = field(default_factory=list)
    # Also those up to an offset.
    settles: list[Act] = field(default_factory=list)
    has: list[Act] = field(default_factory=list)
    fences: list[Act] = field(default_factory=list)

    def acts(self) -> Iterator[Act]:
        yield from self.takes
        yield from self.settles
        yield from self.has

    def sort(self) -> None:
        for acts in (self.takes, self.settles, self.has, self.fences):
            acts.sort(key=lambda act: act.start_ns)


@dataclass
class Order:
    """An ordered group."""

    name: str
    parts: list[Part] = field(default_factory=lambda: [Part() for _ in range(PARTITIONS)])
    # By consumer, in order.
    lets: dict[str, list[Let]] = field(default_factory=lambda: defaultdict(list))
    tried: Counter[str] = field(default_factory=Counter)
    # A check looked at these, and nothing is wrong.
    sound: list[Part] = field(default_factory=list)


class Reader:
    """Reads a journal of one consumer in one group."""

    def __init__(self, order: Order, who: str) -> None:
        self.order = order
        self.who = who
        self.handle = Handle(who, 0)
        self.begun: tuple[str, int, list[Place]] | None = None
        # What it got last, and is not told the epochs of yet.
        self.fresh: list[Act] = []
        # Under which epoch it got what it has, and how often.
        self.got: dict[Place, Act] = {}

    def let(self, start: str, partition: int | None = None) -> None:
        self.order.lets[self.handle.consumer].append(Let(int(start), partition))

    def read(self, kind: str, words: list[str]) -> None:
        self.order.tried[kind] += 1
        if kind == "took":
            self.took(words)
        elif kind in ("has", "acquired"):
            self.has(kind, words)
        elif kind == "try-acquire":
            if 0 < int(words[1]) < ORDERED[self.order.name].lease_ttl_ms:
                self.let(words[0])
        elif kind == "try-release":
            self.let(words[0], None if words[1] == "all" else int(words[1]))
        elif kind in ("try-close", "try-join"):
            self.let(words[0])
        elif kind == "joined":
            self.order.tried[f"joined {words[2] if len(words) > 2 else ''}".strip()] += 1
            self.handle = Handle(self.who, self.handle.number + 1)
            self.got.clear()
        elif kind == "fenced":
            call, start, end, partition = words
            place = int(partition), -1
            act = Act(self.handle, "fenced", int(start), int(end), place, outcome=call)
            self.order.parts[place[0]].fences.append(act)
        elif kind.startswith("try-"):
            self.settle(float("inf"), "")
            self.begun = kind[4:], int(words[0]), [place_of(word) for word in words[1:]]
            if kind == "try-leave":
                self.let(words[0])
        elif kind.startswith("did-"):
            self.settle(int(words[1]), words[2])

    def took(self, words: list[str]) -> None:
        self.end()
        how, start, end, *items = words
        for item in items:
            partition, offset, deliveries, _ = item.split(":")
            place, times = (int(partition), int(offset)), (int(start), int(end))
            self.fresh.append(Act(self.handle, how, *times, place, 0, int(deliveries)))

    def has(self, kind: str, words: list[str]) -> None:
        start, end, *items = words
        if kind == "acquired":
            items = items[1:]
        epochs = {int(one): int(epoch) for one, epoch in (item.split(":") for item in items)}
        for partition, epoch in epochs.items():
            if epoch:
                act = Act(self.handle, "has", int(start), int(end), (partition, -1), epoch)
                self.order.parts[partition].has.append(act)
        if kind == "has":
            self.keep(epochs)

    def keep(self, epochs: dict[int, int]) -> None:
        for act in self.fresh:
            told = replace(act, epoch=epochs.get(act.place[0], 0))
            self.order.parts[act.place[0]].takes.append(told)
            self.got[act.place] = told
        self.fresh.clear()

    def settle(self, end_ns: float, answer: str) -> None:
        if self.begun is None:
            return
        what, start_ns, places = self.begun
        self.begun = None
        outcomes = [answer or "?"] if what == "upto" else list(answer or "?" * len(places))
        if what == "leave":
            return
        for place, outcome in zip(places, outcomes, strict=True):
            got = self.got.get(place)
            epoch, deliveries = (got.epoch, got.deliveries) if got else (0, 0)
            act = Act(self.handle, what, start_ns, end_ns, place, epoch, deliveries, outcome)
            self.order.parts[place[0]].settles.append(act)

    def end(self) -> None:
        self.keep({})


def read_orders(directory: Path) -> tuple[dict[str, Order], dict[Place, int]]:
    """The groups, and since when records are known to be there."""
    orders = {name: Order(name) for name in ORDERED}
    there: dict[Place, int] = {}
    for path in [*sorted((directory / "journal").iterdir()), directory / "drain.0"]:
        readers: dict[str, Reader] = {}
        for line in path.read_text().splitlines():
            kind, *words = line.split()
            if kind == "there" and words[0] == ORDERS:
                partition, offset, count, end_ns = map(int, words[1:])
                there.update(((partition, offset + i), end_ns) for i in range(count))
                continue
            name, plus, mark = words[0].partition("+") if words else ("", "", "")
            if name in orders:
                if words[0] not in readers:
                    readers[words[0]] = Reader(orders[name], life_of(path, plus + mark))
                readers[words[0]].read(kind, words[1:])
        for reader in readers.values():
            reader.settle(float("inf"), "")
            reader.end()
    for order in orders.values():
        for part in order.parts:
            part.sort()
        for lets in order.lets.values():
            lets.sort(key=lambda let: let.start_ns)
    return orders, there
