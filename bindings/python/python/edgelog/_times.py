"""Times of records."""

from datetime import datetime, timedelta, timezone

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def datetime_of(timestamp_ms: int) -> datetime:
    """Milliseconds since 1970 as a datetime in UTC."""
    return _EPOCH + timedelta(milliseconds=timestamp_ms)
