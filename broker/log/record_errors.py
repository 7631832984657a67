"""Errors of single records of an append: a missing key, or a timestamp that the topic rejects.

Source: `LogValidator.validateRecord` and `processRecordErrors`.
"""

from __future__ import annotations

from collections.abc import Sequence

from urteil.broker.log.batch_checks import RecordError, Rejection
from urteil.broker.log.log_config import LogConfig
from urteil.broker.wire.batch_header import NO_TIMESTAMP
from urteil.broker.wire.errors import ErrorCode

MAX_REPORTED = 10_000
"""The maximal number of record errors in one response."""

_SHOWN = 3


class RecordErrors:
    """Collects the errors of one append, whose records are checked some hundred at a time."""

    __slots__ = (
        "_config", "_count", "_errors", "_is_about_time", "_limits", "_now_ms", "newest_ms",
        "oldest_ms",
    )  # fmt: skip

    def __init__(self, config: LogConfig, now_ms: int) -> None:
        self.newest_ms = self.oldest_ms = NO_TIMESTAMP
        self._config = config
        self._now_ms = now_ms
        self._limits = (now_ms - config.timestamp_before_ms, now_ms + config.timestamp_after_ms)
        self._count = 0
        self._errors: list[RecordError] = []
        self._is_about_time = False

    def check(
        self, times: Sequence[int], keys: Sequence[bool], *, claims_broker_time: bool
    ) -> None:
        """Check the next records: their timestamps in ms and whether they have keys.

        `claims_broker_time`: their batch declares LogAppendTime, which only a broker may set.
        """
        first, self._count = self._count, self._count + len(times)
        if not times:
            return
        newest_ms, oldest_ms = max(times), min(times)
        self.newest_ms = max(self.newest_ms, newest_ms) if first else newest_ms
        self.oldest_ms = min(self.oldest_ms, oldest_ms) if first else oldest_ms
        config, (oldest, newest) = self._config, self._limits
        is_in_time = oldest <= oldest_ms and newest_ms <= newest
        has_keys = not config.compacts or all(keys)
        if has_keys and (config.log_append_time or is_in_time) and not claims_broker_time:
            return
        for index, (time_ms, has_key) in enumerate(zip(times, keys, strict=True), first):
            if len(self._errors) == MAX_REPORTED:
                break
            if config.compacts and not has_key:
                self._errors.append((index, "Compacted topic cannot accept message without key"))
                continue
            reason = _wrong_time(
                time_ms, config, self._now_ms, claims_broker_time=claims_broker_time
            )
            if reason:
                self._is_about_time = True
                self._errors.append((index, reason))

    def rejection(self) -> Rejection | None:
        """The rejection with all invalid records; INVALID_TIMESTAMP if any timestamp is invalid."""
        errors = self._errors
        if not errors:
            return None
        if self._is_about_time:
            message = "One or more records have been rejected due to invalid timestamp"
            return Rejection(ErrorCode.INVALID_TIMESTAMP, message, tuple(errors))
        shown = "; ".join(f"record {index}: {reason}" for index, reason in errors[:_SHOWN])
        message = f"{len(errors)} records have been rejected, the first of them: {shown}"
        return Rejection(ErrorCode.INVALID_RECORD, message, tuple(errors))


def _wrong_time(
    time_ms: int, config: LogConfig, now_ms: int, *, claims_broker_time: bool
) -> str | None:
    if config.log_append_time or time_ms == NO_TIMESTAMP:
        if claims_broker_time:
            return "ProducerEntry should not set timestamp type to LogAppendTime"
        return None
    oldest, newest = now_ms - config.timestamp_before_ms, now_ms + config.timestamp_after_ms
    if oldest <= time_ms <= newest:
        return None
    return f"Timestamp {time_ms} is out of range, it should be within [{oldest}, {newest}]"
