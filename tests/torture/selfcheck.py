"""Whether the checks would notice: the same history with something wrong in it, one at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Protocol

from history import Call, History, Partition


class Check(Protocol):
    """A file of checks/. It may have `plants`, too: names, and contexts with something wrong."""

    def check(self, history: History) -> Iterator[str]: ...


@contextmanager
def other(one: Partition, change: Callable[[Partition], object]) -> Iterator[None]:
    before = one.tags, one.keys
    one.tags, one.keys = map(dict, before)
    change(one)
    try:
        yield
    finally:
        one.tags, one.keys = before


def unnoticed(history: History, checks: Sequence[Check]) -> list[str]:
    """What was put wrong and found by no check."""
    missed = []

    def expect(name: str, noticing: Sequence[Check] = checks) -> None:
        if not any(True for check in noticing for _ in check.check(history)):
            missed.append(f"selfcheck: nobody notices {name}")

    for check in checks:
        if plants := getattr(check, "plants", None):
            for name, wrong in plants(history):
                with wrong:
                    expect(name, [check])
    main = history.partitions["main", 0]
    middle = main.following // 2
    for name, change in {
        "a record that is lost": lambda one: one.tags.pop(middle),
        "a record that is another one": lambda one: one.tags.update({middle: one.tags[middle + 1]}),
        "two that change places": lambda one: one.tags.update(
            {middle: one.tags[middle + 1], middle + 1: one.tags[middle]}
        ),
        "an end that is missing": lambda one: [
            one.tags.pop(offset) for offset in list(one.tags) if offset > middle
        ],
    }.items():
        with other(main, change):
            expect(name)
    life, ack = next(
        (life, ack)
        for life in history.lives
        for ack in life.acks
        if ack.topic == "main" and ack.durability != "buffered"
    )
    for name, wrong in {
        "an offset that was told wrong": replace(ack, offset=ack.offset + 1),
        "a record that is nowhere": replace(ack, tag="nobody/0/1"),
    }.items():
        life.acks.append(wrong)
        expect(name)
        life.acks.pop()
    life.calls.append(Call(str(life), "slow", "written", 1, 20_000_000_001, "OK"))
    expect("a call of 20 seconds")
    life.calls.pop()
    life.faults.append("a fault")
    expect("a fault")
    life.faults.pop()
    return missed
