"""Whether the checks would notice: a history that is right, and the same with something wrong in
it, one at a time. It needs no board."""

from __future__ import annotations

from checks import check
from history import History

FIRST = """\
LOOK
NO-LOG
LOOKED
GROUP t g synced ordered
TRY t 0 3 key
ACK t 0 0 0 3 synced
TOOK t g 0:0:1:1/0 0:1:1:1/1
EPOCH t g 0 7
TRY-ACK t g 0:0
DID-ACK t g 0:0
TRY t 3 1 -
ACK t 0 3 3 1 written
SAFE t
TRY t 4 1 -
ACK t 0 4 4 1 written
TRY compact 5 1 k
ACK compact 0 0 5 1 synced
TRY brief 6 1 -
ACK brief 0 0 6 1 synced
TRY-DELETE brief
DELETED brief"""
SECOND = """\
LOOK
DAMAGE first 1 t 0 0 500 12 5 5
PART t 0 0 4 4 400
REC t 0 0 1/0 key
REC t 0 1 1/1 key
REC t 0 2 1/2 key
REC t 0 3 1/3 -
CURSOR t g 0 2
PENDING t g 0 1 1
LEASE t g 0 7 -
PART compact 0 0 1 1 100
REC compact 0 0 1/5 k
PART brief 0 0 0 0 0
PROBES
TRY t 1000000 1 -
ACK t 0 4 1000000 1 synced
SUM first 5
SUM second 5
LOOKED
EPOCH t g 0 8
TOOK t g 0:1:2:1/1"""

# What is wrong: a text of the second life, what stands there instead, and what is to be said.
WRONG = {
    "a lost record": ("REC t 0 2 1/2 key\n", "", "was promised"),
    "a lost record that a sync covered": ("REC t 0 3 1/3 -\n", "", "was promised"),
    "another record": ("REC t 0 2 1/2 key", "REC t 0 2 1/4 -", "was promised"),
    "one record twice": ("REC t 0 3 1/3 -", "REC t 0 3 1/2 key", "is also at"),
    "a record of nobody": ("PENDING", "REC t 0 4 1/9 -\nPENDING", "nobody appended"),
    "unknown bytes": ("REC t 0 2 1/2 key", "REC t 0 2 unknown key", "was promised"),
    "another key": ("REC t 0 2 1/2 key", "REC t 0 2 1/2 no", "has the key"),
    "a wrong order": ("REC t 0 3 1/3 -", "REC t 0 1 1/3 -", "comes behind"),
    "another place": ("CURSOR", "REC t 0 5 1/4 -\nCURSOR", "was said to be at"),
    "a gap": ("PART t 0 0 4 4", "PART t 0 0 5 5", "no report says so"),
    "an early end": ("PART t 0 0 4 4", "PART t 0 0 3 3", "was given out"),
    "a late beginning": ("PART t 0 0 4 4", "PART t 0 1 4 4", "lies before"),
    "a header": ("DAMAGE first 1 t", "DAMAGE first 4 t", "damaged a header"),
    "new damage": ("SUM first", "DAMAGE verify 2 t 0 9 5 5 1 1\nSUM first", "verify found"),
    "damage that stays": (
        "SUM second",
        "DAMAGE second 2 t 0 9 5 5 1 1\nSUM second",
        "second found",
    ),
    "another second open": ("SUM second 5", "SUM second 6", "a second open"),
    "an offset given twice": ("ACK t 0 4 1000000", "ACK t 0 3 1000000", "is there"),
    "an acknowledgement that is lost": ("CURSOR", "PENDING t g 0 0 1\nCURSOR", "comes again"),
    "a record that a group lost": ("CURSOR t g 0 2", "CURSOR t g 0 4", "is lost"),
    "a delivery that is not counted": ("PENDING t g 0 1 1\n", "", "is lost"),
    "a count that fell": ("TOOK t g 0:1:2", "TOOK t g 0:1:1", "after 1"),
    "a record again": ("TOOK t g 0:1:2:1/1", "TOOK t g 0:0:2:1/0", "came again"),
    "a wrong beginning": ("TOOK t g 0:1:2:1/1", "TOOK t g 0:2:1:1/2", "begins here"),
    "an epoch again": ("EPOCH t g 0 8", "EPOCH t g 0 7", "was before the cut"),
    "a forgotten epoch": ("LEASE t g 0 7 -", "LEASE t g 0 6 -", "is known"),
    "a lease that is left": ("LEASE t g 0 7 -", "LEASE t g 0 7 worker", "still leased"),
    "a lost key": ("REC compact 0 0 1/5 k\n", "", "compact (0, 0): 1/5 was promised"),
    "a topic that came back": (
        "PART brief 0 0 0 0",
        "REC brief 0 0 1/6 -\nPART brief 0 0 1 1",
        "back",
    ),
    "a fault": ("PROBES", "PROBES\nFAULT append IO", "FAULT append"),
}


def faults(second: str) -> list[str]:
    history = History(check)
    found = list(history.take([f"{line} @{ms}" for ms, line in enumerate(FIRST.split("\n"))]))
    return found + list(history.take([f"{line} @9" for line in second.split("\n")]))


def unnoticed() -> list[str]:
    """What is wrong with the checks."""
    missed = [f"a right history is called wrong: {fault}" for fault in faults(SECOND)]
    for name, (text, other, said) in WRONG.items():
        assert text in SECOND, text
        if not any(said in fault for fault in faults(SECOND.replace(text, other, 1))):
            missed.append(f"nobody notices {name}")
    return missed
