"""The log is sound, and opens in no time."""

from __future__ import annotations

from collections.abc import Iterator

from history import History


def check(history: History) -> Iterator[str]:
    for damage in history.damages:
        yield f"verify: {damage}"
    if history.opened_s > 1.0:
        yield f"opening took {history.opened_s:.1f} s"
