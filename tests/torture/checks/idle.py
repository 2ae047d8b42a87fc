"""Everybody took part: a process that never gets to its work proves nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from history import History

# In a run with fewer appends than that, one may well have been killed each time it started.
MANY = 1000


def check(history: History) -> Iterator[str]:
    appends = Counter[str]()
    for life in history.lives:
        appends[life.name] += len(life.acks)
    if appends.total() < MANY:
        return
    for name, count in appends.items():
        if count == 0:
            yield f"{name} has appended nothing"
