"""The exceptions: one class for each error code of the engine.

Where Python has a class that means the same, the exception is one of those, too.
"""

from __future__ import annotations

import errno
from typing import ClassVar

from edgelog._edgelog import _statuses


class Error(Exception):
    """Something failed. The text says what, and the attributes say where."""

    #: The error's number in edgelog.h.
    status: int = 0
    #: The error's name in edgelog.h, such as "NO_SPACE".
    code: ClassVar[str] = ""

    #: The error number of the operating system.
    os_error: int | None = None
    #: The partition where it happened.
    partition: int | None = None
    #: The segment where it happened: the offset it begins with.
    segment: int | None = None
    #: The byte in the segment's file.
    position: int | None = None
    #: The first offset that is missing.
    offset: int | None = None
    #: The first offset behind what is missing.
    offset_end: int | None = None
    #: The process that holds the log.
    process_id: int | None = None

    _os_error: ClassVar[int | None] = None

    def __init__(self, text: str = "", *, os_error: int | None = None) -> None:
        self._text = text
        self.os_error = os_error
        if isinstance(self, OSError):
            # errno and strerror are OSError's own, and are set by its arguments.
            super().__init__(os_error if os_error is not None else self._os_error, text)
        else:
            super().__init__(text)

    def __str__(self) -> str:
        return self._text

    def __reduce__(self) -> tuple[object, ...]:
        return (_restore, (type(self), self._text, dict(self.__dict__)))


class InvalidError(Error, ValueError):
    """A wrong argument."""


class MisuseError(Error, RuntimeError):
    """Something was used as it must not be, as a reader by two threads at once."""


class ClosedError(Error, ValueError):
    """The object, or the log it belongs to, is closed."""


class ForkedError(Error, RuntimeError):
    """The object was opened in the parent process, before a fork."""


class IoError(Error, OSError):
    """The operating system reported an error."""

    _os_error = errno.EIO


class NoSpaceError(Error, OSError):
    """The file system is full. Nothing was appended, and no offset was used up."""

    _os_error = errno.ENOSPC


class FullError(Error):
    """The topic or the log has reached its limit and rejects what is too much."""


class TooLargeError(Error, ValueError):
    """A record, a key or a batch is beyond the limits."""


class NotFoundError(Error, FileNotFoundError):
    """There is no such log or topic."""

    _os_error = errno.ENOENT


class ExistsError(Error, FileExistsError):
    """The log or topic is there already."""

    _os_error = errno.EEXIST


class LockedError(Error, BlockingIOError):
    """Another process holds the log; process_id says which."""

    _os_error = errno.EAGAIN


class BusyError(Error, BlockingIOError):
    """Another process is changing the same and takes too long; nothing was done, try again."""

    _os_error = errno.EBUSY


class ReadOnlyError(Error, PermissionError):
    """The log was opened for reading only."""

    _os_error = errno.EROFS


class DamagedError(Error):
    """Nothing is readable, or there is damage and it was to be refused."""


class VersionError(Error):
    """It was written by a newer edgelog."""


class PoisonedError(Error, OSError):
    """A sync failed, or LOCK was removed: open the log again to append."""

    _os_error = errno.EIO


class CancelledError(Error):
    """The reader was cancelled."""


class DeletedError(Error):
    """The topic was deleted."""


class GapError(Error):
    """Records are missing from offset to offset_end. The reader goes on behind them."""


class NoMemoryError(Error, MemoryError):
    """There is not enough memory."""


class InternalError(Error, RuntimeError):
    """A fault of edgelog itself. Please report it."""


class UnsupportedError(Error):
    """This is not offered here."""


class FencedError(Error):
    """The partition of an ordered group is not this consumer's any more; partition says which.

    Nothing of the call was done. What it had of the partition comes to whoever has it now: read on.
    """


_CLASSES: dict[str, type[Error]] = {
    "INVALID": InvalidError,
    "MISUSE": MisuseError,
    "CLOSED": ClosedError,
    "FORKED": ForkedError,
    "IO": IoError,
    "NO_SPACE": NoSpaceError,
    "FULL": FullError,
    "TOO_LARGE": TooLargeError,
    "NOT_FOUND": NotFoundError,
    "EXISTS": ExistsError,
    "LOCKED": LockedError,
    "BUSY": BusyError,
    "READ_ONLY": ReadOnlyError,
    "DAMAGED": DamagedError,
    "VERSION": VersionError,
    "POISONED": PoisonedError,
    "CANCELLED": CancelledError,
    "DELETED": DeletedError,
    "GAP": GapError,
    "NO_MEMORY": NoMemoryError,
    "INTERNAL": InternalError,
    "UNSUPPORTED": UnsupportedError,
    "FENCED": FencedError,
}

# The numbers are the library's: a newer one may have more of them than there are classes.
_BY_STATUS: dict[int, type[Error]] = {}
for _status, _name in _statuses().items():
    _class = _CLASSES.get(_name)
    if _class is not None:
        _class.status = _status
        _class.code = _name
        _BY_STATUS[_status] = _class


def _make(
    status: int,
    text: str,
    os_error: int | None,
    partition: int | None,
    segment: int | None,
    position: int | None,
    offset: int | None,
    offset_end: int | None,
    process_id: int | None,
) -> Error:
    """Make the exception for an error of the engine."""
    error = _BY_STATUS.get(status, Error)(text, os_error=os_error)
    error.status = status
    error.partition = partition
    error.segment = segment
    error.position = position
    error.offset = offset
    error.offset_end = offset_end
    error.process_id = process_id
    return error


def _restore(kind: type[Error], text: str, state: dict[str, object]) -> Error:
    """Make an exception again that was pickled."""
    error = kind(text)
    error.__dict__.update(state)
    if isinstance(error, OSError) and error.os_error is not None:
        error.errno = error.os_error
    return error
