"""Whether the checks would notice: the same history with something wrong in it, one at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from history import Call, History, Partition


@contextmanager
def other_tags(one: Partition, change: Callable[[dict[int, str]], None]) -> Iterator[None]:
    before = one.tags
    one.tags = dict(before)
    change(one.tags)
    try:
        yield
    finally:
        one.tags = before


def unnoticed(history: History, problems: Callable[[History], list[str]]) -> list[str]:
    """What was put wrong and found by no check."""
    missed = []

    def expect(name: str) -> None:
        if not problems(history):
            missed.append(f"selfcheck: nobody notices {name}")

    main = history.partitions["main", 0]
    middle = main.following // 2
    for name, change in {
        "a record that is lost": lambda tags: tags.pop(middle),
        "a record that is another one": lambda tags: tags.update({middle: tags[middle + 1]}),
        "two that change places": lambda tags: tags.update(
            {middle: tags[middle + 1], middle + 1: tags[middle]}
        ),
        "an end that is missing": lambda tags: [tags.pop(o) for o in list(tags) if o > middle],
    }.items():
        with other_tags(main, change):
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
    life.calls.append(Call(str(life), "slow", "written", 1, 2_000_000_001, "OK"))
    expect("a call of two seconds")
    life.calls.pop()
    life.faults.append("a fault")
    expect("a fault")
    life.faults.pop()
    return missed
