"""The scenarios of consumer groups, through Python.

The answers are those of Redis Streams. Where edgelog differs, `scenarios_differ.jsonl` says why:
with edgelog's own answer, or that it cannot be asked ("skip").
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import edgelog
import pytest
from conftest import Background

HERE = Path(__file__).parent
#: As many as a scenario without a count can have.
ALL = 100
#: Larger than half a segment, so that each record but the last is sealed and can be removed.
KEY = b"k" * 600
#: The errors that stand for one of the scenarios.
ERRORS: dict[str, tuple[type[Exception], ...]] = {
    "NO_GROUP": (edgelog.NotFoundError, edgelog.DeletedError),
    "NO_STREAM": (edgelog.NotFoundError, edgelog.DeletedError),
    "BAD_ARG": (edgelog.InvalidError,),
    # Where a position is wanted, a word is no position.
    "BAD_ID": (edgelog.InvalidError, TypeError),
}

Step = dict[str, Any]


# Times of the scenarios, in milliseconds. On a slow machine all of them are so many times longer.
TIMES = {"ms", "block_ms", "min_idle", "set_idle", "@ge", "@lt", "@between"}
PATIENCE = int(os.environ.get("EDGELOG_SCENARIO_PATIENCE", "1"))


def longer(value: Any) -> Any:
    return [longer(one) for one in value] if isinstance(value, list) else value * PATIENCE


def patiently(read: dict[str, Any]) -> dict[str, Any]:
    return {key: longer(value) if key in TIMES else value for key, value in read.items()}


def lines(file: Path) -> dict[str, Any]:
    text = file.read_text()
    found = [json.loads(line, object_hook=patiently) for line in text.splitlines()]
    named = {one["name"]: one for one in found}
    assert len(named) == len(found), "a name is there twice"
    return named


SCENARIOS = lines(HERE.parent / "scenarios" / "redis-groups.jsonl")
DIFFERENCES = lines(HERE / "scenarios_differ.jsonl")


class Ids:
    """What a scenario calls records. The n-th that was added has offset n - 1."""

    def __init__(self) -> None:
        self._ids: list[str] = []

    def __len__(self) -> int:
        return len(self._ids)

    def add(self, name: str) -> None:
        self._ids.append(name)

    def name(self, offset: int) -> str:
        return self._ids[offset]

    def place(self, name: str) -> Any:
        """A position; what is no id stays what it is, and is for the package to refuse."""
        try:
            parse(name)
        except ValueError:
            return name
        return (0, self._ids.index(name) if name in self._ids else 1 << 40)

    def first(self, name: str) -> int:
        """The first offset whose record is not before this id."""
        return sum(parse(one) < parse(name) for one in self._ids)

    def behind(self, name: str, seq: int = 0) -> int:
        """The first offset whose record is behind this id."""
        return sum(parse(one) <= parse(name, seq) for one in self._ids)

    def start(self, name: str) -> Any:
        """Where a reader or a cursor begins that has come to this id."""
        try:
            return {"$": "latest"}.get(name) or self.behind(name)
        except ValueError:
            return name


def parse(name: str, seq: int = 0) -> tuple[int, int]:
    ms, _, rest = name.partition("-")
    return int(ms), int(rest) if rest else seq


class World:
    """A log on which a scenario is played."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._log = edgelog.open(path)
        self._ids: dict[str, Ids] = {}
        self._threads: dict[str, Background] = {}

    def close(self) -> None:
        self._log.close()

    def play(self, step: Step) -> Any:
        operation: Callable[[Step], Any] = getattr(self, step["op"])
        return operation(step)

    def timed(self, step: Step) -> tuple[Any, int]:
        """What it answers or raises, and how many milliseconds it took."""
        begin = time.monotonic()
        try:
            answer = self.play(step)
        except (edgelog.Error, TypeError) as error:
            answer = error
        if step["op"] == "join":
            return answer  # type: ignore[no-any-return]
        return answer, round((time.monotonic() - begin) * 1000)

    # Where it is done.

    def open_topic(self, step: Step, create: bool = False) -> edgelog.Topic:
        name = step.get("stream", "s")
        return self._log.topic(name, segment_bytes=1024, min_garbage_percent=1, create=create)

    def open_group(self, step: Step) -> edgelog.Group:
        return self.open_topic(step).group(step.get("group", "g"), create=False)

    def open_consumer(self, step: Step) -> edgelog.Consumer:
        return self.open_group(step).consumer(step["consumer"])

    def ids(self, step: Step) -> Ids:
        return self._ids.setdefault(step.get("stream", "s"), Ids())

    def places(self, step: Step) -> list[Any]:
        return [self.ids(step).place(name) for name in step["ids"]]

    def names(self, step: Step, records: list[edgelog.Record]) -> list[str]:
        return [self.ids(step).name(record.offset) for record in records]

    def shown(self, step: Step, records: list[edgelog.Record]) -> list[Any]:
        names = self.names(step, records)
        if step.get("ids_only") or step.get("just_id"):
            return list(names)
        values = [json.loads(record.value or b"") for record in records]
        return [[name, value] for name, value in zip(names, values)]

    # Threads and time.

    def spawn(self, step: Step) -> None:
        self._threads[step["thread"]] = Background(lambda: self.timed(step["run"]))
        # It waits by then.
        time.sleep(0.1)

    def join(self, step: Step) -> Any:
        return self._threads.pop(step["thread"]).answer()

    def sleep(self, step: Step) -> None:
        time.sleep(step["ms"] / 1000)

    def reopen(self, _step: Step) -> None:
        self._log.close()
        self._log = edgelog.open(self._path)

    # Records.

    def add(self, step: Step) -> str:
        self.add_many({**step, "ids": [step["id"]]})
        if "maxlen" in step:
            self.trim(step)
        name: str = step["id"]
        return name

    def add_many(self, step: Step) -> None:
        topic = self.open_topic(step, create=True)
        value = json.dumps(step.get("fields", [["f", "v"]]))
        ids = self.ids(step)
        first = len(ids)
        # Before they are there: another thread may be waiting for them.
        for name in step["ids"]:
            ids.add(name)
        assert topic.append_batch([(KEY, value)] * len(step["ids"])) == (0, first)

    def fill(self, step: Step) -> None:
        for number in range(1, step["n"] + 1):
            self.add({"id": step["id_fmt"].replace("#", str(number))})

    def remove(self, step: Step, offsets: list[int]) -> int:
        with self.open_topic(step).compaction() as compaction:
            for offset in offsets:
                # The newest record is not sealed, and stays.
                if offset < compaction.end_offset:
                    compaction.drop(offset)
        assert compaction.report is not None
        return compaction.report.records_removed

    def del_(self, step: Step) -> int:
        return self.remove(step, [offset for _, offset in self.places(step)])

    def trim(self, step: Step) -> int:
        topic = self.open_topic(step)
        offsets = [record.offset for record in topic.reader()]
        if "minid" in step:
            first = self.ids(step).first(step["minid"])
            offsets = [offset for offset in offsets if offset < first]
        else:
            offsets = offsets[: max(0, len(offsets) - step["maxlen"])]
        if step.get("refs") == "acked":
            offsets = [offset for offset in offsets if is_done(topic, offset)]
        return self.remove(step, offsets)

    def destroy_stream(self, step: Step) -> int:
        self._log.delete_topic(step.get("stream", "s"))
        self._ids.pop(step.get("stream", "s"))
        return 1

    def exists(self, step: Step) -> int:
        return int(step.get("stream", "s") in self._log.topics())

    def len(self, step: Step) -> int:
        return self.open_topic(step).stats().records

    def range(self, step: Step) -> list[Any]:
        return self.shown(step, list(self.open_topic(step).reader()))

    def read(self, step: Step) -> Any:
        streams = step.get("streams", [[None, step.get("from")]])
        parts = []
        for stream, start in streams:
            part = {**step, "from": start} if stream is None else {"stream": stream, "from": start}
            parts.append((stream, part, self.reader(part)))
        deadline = time.monotonic() + step.get("block_ms", 0) / 1000
        found = self.read_in_turn(step, parts)
        # A reader waits for one topic; a program with several lets them take turns.
        while not found and time.monotonic() < deadline:
            found = self.read_in_turn(step, parts, deadline)
        if "streams" in step:
            return [[stream, records] for stream, records in found] or None
        return found[0][1] if found else None

    def read_in_turn(
        self, step: Step, parts: list[Any], deadline: float = 0.0
    ) -> list[tuple[Any, list[Any]]]:
        found = []
        for stream, part, reader in parts:
            rest = max(0.0, deadline - time.monotonic())
            # What it reads back from the end is one record.
            count = 1 if part["from"] == "+" else step.get("count", ALL)
            timeout = rest if len(parts) == 1 else min(rest, 0.01)
            records = reader.read(count, timeout)
            records += reader.read(count - len(records)) if 0 < len(records) < count else []
            if records:
                found.append((stream, self.shown(part, records)))
        return found

    def reader(self, step: Step) -> edgelog.Reader:
        topic = self.open_topic(step, create=True)
        if step["from"] == "+":
            return topic.reader(reverse=True)
        return topic.reader(self.ids(step).start(step["from"]))

    # Groups and consumers.

    def group_create(self, step: Step) -> str:
        # Nothing comes again by itself, as in Redis.
        self.open_topic(step, step.get("mkstream", False)).group(
            step.get("group", "g"),
            start=self.ids(step).start(step["start"]),
            ack_timeout_ms=edgelog.NEVER_MS,
            create="new",
        )
        return "OK"

    def group_set_id(self, step: Step) -> str:
        self.open_group(step).seek(self.ids(step).start(step["id"]))
        return "OK"

    def group_destroy(self, step: Step) -> int:
        topic = self.open_topic(step)
        there = step.get("group", "g") in topic.groups()
        if there:
            topic.delete_group(step.get("group", "g"))
        return int(there)

    def consumer_create(self, step: Step) -> int:
        group = self.open_group(step)
        before = [stats.name for stats in group.consumers()]
        group.consumer(step["consumer"])
        return int(step["consumer"] not in before)

    def consumer_delete(self, step: Step) -> int:
        group = self.open_group(step)
        if step["consumer"] not in [stats.name for stats in group.consumers()]:
            return 0
        return group.remove_consumer(step["consumer"])

    def group_read(self, step: Step) -> Any:
        if "streams" in step:
            parts = [
                {**step, "stream": stream, "from": start, "ids_only": True}
                for stream, start in step["streams"]
            ]
            # First the groups are opened, so that nothing happens if one is not there.
            groups = [self.open_group(part) for part in parts]
            return [
                [part["stream"], self.take(part, group.consumer(step["consumer"]))]
                for part, group in zip(parts, groups)
            ]
        return self.take(step, self.open_consumer(step))

    def take(self, step: Step, consumer: edgelog.Consumer) -> Any:
        start, count = step.get("from", ">"), step.get("count", ALL)
        if start == ">":
            options: Any = {"at_most_once": step.get("noack", False)}
            records = consumer.read(count, step.get("block_ms", 0) / 1000, **options)
            while records and len(records) < count:
                more = consumer.read(count - len(records), **options)
                if not more:
                    break
                records += more
            return self.shown(step, records) or None
        if start in ("$", "-"):
            consumer.read(take=start)
        behind = self.ids(step).behind(start)
        own = consumer.read(1000, take="own")
        own = sorted((one for one in own if one.offset >= behind), key=lambda one: one.offset)
        return self.shown(step, own[:count])

    def claim_read(self, step: Step) -> Any:
        """What is pending for so long comes again through the plain read, if the group says so."""
        if "from" in step:
            return self.group_read(step)
        time.sleep(0.002)
        # 0 is the default, so it is a millisecond.
        self.open_group(step).configure(ack_timeout_ms=max(1, step["min_idle"]))
        records = self.open_consumer(step).read(
            step.get("count", ALL),
            step.get("block_ms", 0) / 1000,
            at_most_once=step.get("noack", False),
        )
        names = self.names(step, records)
        return [[name, one.deliveries - 1] for name, one in zip(names, records)] or None

    def ack(self, step: Step) -> int:
        return self.open_group(step).ack(self.places(step)).count("done")

    def nack(self, step: Step) -> int:
        group, uncounted = self.open_group(step), step["mode"] != "fail"
        return group.nack(self.places(step), uncounted=uncounted).count("done")

    def claim(self, step: Step) -> Any:
        records = self.open_consumer(step).claim(
            self.places(step),
            min_idle_ms=step.get("min_idle", 0),
            uncounted=step.get("just_id", False),
        )
        return self.shown(step, records)

    def autoclaim(self, step: Step) -> Any:
        """Without a cursor to carry about; of what is gone it tells how much."""
        consumer = self.open_consumer(step)
        records = consumer.claim_idle(
            step.get("min_idle", 0),
            max=step.get("count", ALL),
            uncounted=step.get("just_id", False),
        )
        deleted: Any = consumer.last_delivery.expired or []
        return {"cursor": "0-0", "claimed": self.names(step, records), "deleted": deleted}

    # What is known of groups.

    def pending_summary(self, step: Step) -> Any:
        group, ids = self.open_group(step), self.ids(step)
        pending = group.pending()
        return {
            "count": group.stats().pending,
            "min": ids.name(pending[0].offset) if pending else None,
            "max": ids.name(pending[-1].offset) if pending else None,
            "consumers": [[one.name, one.pending] for one in group.consumers() if one.pending],
        }

    def pending_range(self, step: Step) -> Any:
        group, ids = self.open_group(step), self.ids(step)
        pending = group.pending(
            consumer=step.get("consumer"),
            first_offset=ids.first(step["start"]) if "start" in step else 0,
            last_offset=ids.behind(step["end"], 2**64) - 1 if "end" in step else None,
            min_idle_ms=step.get("min_idle", 0),
            max=step.get("count", ALL),
        )
        answer = []
        for one in pending:
            idle = [one.idle_ms] if step.get("with_idle") else []
            answer.append([ids.name(one.offset), one.consumer or "", *idle, one.deliveries])
        return answer

    def info_stream(self, step: Step) -> Any:
        topic = self.open_topic(step)
        stats = topic.partition_stats()
        return {
            "length": stats.records,
            "groups": len(topic.groups()),
            "last_id": self.ids(step).name(stats.next_offset - 1),
            "entries_added": stats.next_offset,
        }

    def info_groups(self, step: Step) -> int:
        return len(self.open_topic(step).groups())

    def info_group(self, step: Step) -> Any:
        group = self.open_group(step)
        stats, position = group.stats(), group.position()
        return {
            "last_delivered": self.ids(step).name(position - 1) if position else "0-0",
            "entries_read": position,
            "consumers": stats.consumers,
            "pending": stats.pending,
            "lag": stats.lag,
        }

    def info_consumers(self, step: Step) -> Any:
        answer = []
        for one in self.open_group(step).consumers():
            delivered = -1 if one.delivered_ago_ms is None else one.delivered_ago_ms
            times = [one.seen_ago_ms, delivered] if step.get("with_times") else []
            answer.append([one.name, one.pending, *times])
        return answer


# "del" is a word of the language.
setattr(World, "del", World.del_)


def is_done(topic: edgelog.Topic, offset: int) -> bool:
    """Whether all groups are done with a record."""
    groups = [topic.group(name) for name in topic.groups()]
    return all(
        group.position() > offset and not group.pending(first_offset=offset, last_offset=offset)
        for group in groups
    )


# Whether an answer is as it has to be.


def fits(expected: Any, answer: Any) -> bool:
    """Of an object only what is expected is looked at."""
    if isinstance(expected, dict):
        matchers = [name for name in expected if name.startswith("@")]
        if matchers:
            return all(meets(name, expected[name], answer) for name in matchers)
        return isinstance(answer, dict) and all(
            name in answer and fits(value, answer[name]) for name, value in expected.items()
        )
    if isinstance(expected, list):
        if not isinstance(answer, list) or len(expected) != len(answer):
            return False
        return all(map(fits, expected, answer))
    return bool(expected == answer) and type(expected) is type(answer)


def meets(matcher: str, value: Any, answer: Any) -> bool:
    is_number = isinstance(answer, int)
    if matcher == "@ge":
        return is_number and answer >= value
    if matcher == "@lt":
        return is_number and answer < value
    if matcher == "@between":
        return is_number and value[0] <= answer <= value[1]
    if matcher == "@oneof":
        return any(fits(one, answer) for one in value)
    assert matcher == "@any", f"no matcher {matcher}"
    return True


def is_as(expected: Any, answer: Any, took_ms: int) -> bool:
    if "error" in expected and not isinstance(answer, ERRORS[expected["error"]]):
        return False
    if "result" in expected and not fits(expected["result"], answer):
        return False
    return "took_ms" not in expected or fits(expected["took_ms"], took_ms)


def by_step(expectations: Any) -> dict[int, Any]:
    return {one["step"]: one for one in expectations}


@pytest.fixture
def world(path: Path) -> Iterator[World]:
    """A log on which a scenario is played."""
    world = World(path)
    yield world
    world.close()


@pytest.mark.parametrize("name", SCENARIOS)
def test_scenario(name: str, world: World) -> None:
    scenario, difference = SCENARIOS[name], DIFFERENCES.get(name, {})
    if difference.get("skip"):
        pytest.skip(difference["why"])
    written, own = by_step(scenario["expect"]), by_step(difference.get("expect", []))
    differs = "without" in difference or bool(difference.get("sometimes"))
    for number, step in enumerate(scenario["ops"]):
        if number in difference.get("without", []):
            continue
        answer, took_ms = world.timed(step)
        expected = own.get(number, written.get(number))
        if number in own and not is_as(written.get(number, {}), answer, took_ms):
            differs = True
        if expected is not None:
            about = f"step {number}, {step}: {answer!r} after {took_ms} ms, not {expected}"
            assert is_as(expected, answer, took_ms), about
        elif isinstance(answer, Exception):
            raise answer
    assert differs or not difference, "nothing differs: take it off the list"


def test_the_lists_are_complete() -> None:
    assert len(SCENARIOS) == 107
    assert set(DIFFERENCES) <= set(SCENARIOS)
    assert all(difference["why"] for difference in DIFFERENCES.values())
