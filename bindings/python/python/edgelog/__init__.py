"""An embedded commit log for gateways and small devices.

A log is a directory that holds topics; a topic is an ordered sequence of records, split into
partitions. Several programs, in C, Python and Node, can use the same log at the same time.

    import edgelog

    with edgelog.open("telemetry") as log:
        topic = log.topic("readings")
        topic.append(b"21.5", key="attic")
        for record in topic.reader():
            print(record.offset, record.key, record.value)

Consumers of a group share the records and acknowledge them:

        with topic.group("uplink") as group, group.consumer("worker") as consumer:
            for record in consumer:  # waits for ever
                print(record.value)

Keys lie in the clear beside the values, also where an application encrypts its values.
"""

import atexit as _atexit

from edgelog._edgelog import (
    BATCH_RECORDS_MAX,
    CONSUMERS_MAX,
    GROUPS_MAX,
    KEY_BYTES_MAX,
    LIBRARY_VERSION,
    LINKED,
    NAME_BYTES_MAX,
    NEVER_MS,
    Compaction,
    CompactionReport,
    Consumer,
    ConsumerRecords,
    ConsumerStats,
    Damage,
    Delivery,
    Follow,
    Gaps,
    Group,
    GroupOptions,
    GroupStats,
    Handling,
    Keep,
    Lease,
    Log,
    LogStats,
    PartitionStats,
    PendingRecord,
    Position,
    Reader,
    Record,
    Report,
    Topic,
    TopicOptions,
    TopicStats,
    _close_all,
    keep_all,
    keep_for,
    keep_last,
    keep_nothing,
    key,
    open,
    partition_of,
)
from edgelog._errors import (
    BusyError,
    CancelledError,
    ClosedError,
    DamagedError,
    DeletedError,
    Error,
    ExistsError,
    FencedError,
    ForkedError,
    FullError,
    GapError,
    InternalError,
    InvalidError,
    IoError,
    LockedError,
    MisuseError,
    NoMemoryError,
    NoSpaceError,
    NotFoundError,
    PoisonedError,
    ReadOnlyError,
    TooLargeError,
    UnsupportedError,
    VersionError,
)

__version__ = "0.1.0"

__all__ = [
    "BATCH_RECORDS_MAX",
    "CONSUMERS_MAX",
    "GROUPS_MAX",
    "KEY_BYTES_MAX",
    "LIBRARY_VERSION",
    "LINKED",
    "NAME_BYTES_MAX",
    "NEVER_MS",
    "BusyError",
    "CancelledError",
    "ClosedError",
    "Compaction",
    "CompactionReport",
    "Consumer",
    "ConsumerRecords",
    "ConsumerStats",
    "Damage",
    "DamagedError",
    "DeletedError",
    "Delivery",
    "Error",
    "ExistsError",
    "FencedError",
    "Follow",
    "ForkedError",
    "FullError",
    "GapError",
    "Gaps",
    "Group",
    "GroupOptions",
    "GroupStats",
    "Handling",
    "InternalError",
    "InvalidError",
    "IoError",
    "Keep",
    "Lease",
    "LockedError",
    "Log",
    "LogStats",
    "MisuseError",
    "NoMemoryError",
    "NoSpaceError",
    "NotFoundError",
    "PartitionStats",
    "PendingRecord",
    "PoisonedError",
    "Position",
    "ReadOnlyError",
    "Reader",
    "Record",
    "Report",
    "TooLargeError",
    "Topic",
    "TopicOptions",
    "TopicStats",
    "UnsupportedError",
    "VersionError",
    "keep_all",
    "keep_for",
    "keep_last",
    "keep_nothing",
    "key",
    "open",
    "partition_of",
]

_atexit.register(_close_all)
