"""No call failed that should not, and nobody stood still because of a dead process."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

from history import History

# How long a call may take while nobody is stopped; longer where the processor is emulated.
MOST_MS = 1000.0 * float(os.environ.get("EDGELOG_TORTURE_PATIENCE", "1"))


def check(history: History) -> Iterator[str]:
    for life in history.lives:
        for fault in life.faults:
            yield f"{life}: {fault}"
        for call in life.calls:
            stopped = history.was_stopped(call.start_ns, call.end_ns)
            if call.kind == "error":
                yield f"{life}: {call.name} failed: {call.text}"
            elif not stopped and history.own_ms(call) > MOST_MS - 50:
                what = "was BUSY after" if call.kind == "busy" else "took"
                yield f"{life}: {call.name} {what} {call.ms():.0f} ms, and nobody stopped"
        # The end of the run may come before it listens to signals.
        is_young = life.exit_code == -signal.SIGTERM and not life.has_started
        if not life.was_killed and not is_young and (life.exit_code != 0 or not life.has_ended):
            yield f"{life} ended with {life.exit_code}: {life.stderr}"
