"""What is wrong with single records of an append: no key, or a time that the topic does not take.

Source: `LogValidator.validateRecord` and `processRecordErrors`.
"""

from __future__ import annotations

from collections.abc import Iterable

from urteil.broker.log.config import LogConfig
from urteil.broker.log.validate import RecordError, Refused
from urteil.broker.wire.batch_header import NO_TIMESTAMP
from urteil.broker.wire.errors import ErrorCode

Look = tuple[int, bool, bool]
"""Of a record: its time in ms, whether it has a key, whether its batch claims a broker's time."""

_SHOWN = 3


def refuse_records(records: Iterable[Look], config: LogConfig, now_ms: int) -> Refused | None:
    """Every record that is at fault; INVALID_TIMESTAMP if one of them is for its time."""
    errors: list[RecordError] = []
    is_about_time = False
    for index, (time_ms, has_key, claims_broker_time) in enumerate(records):
        if config.compacts and not has_key:
            errors.append((index, "Compacted topic cannot accept message without key"))
            continue
        reason = _wrong_time(time_ms, config, now_ms, claims_broker_time=claims_broker_time)
        if reason:
            is_about_time = True
            errors.append((index, reason))
    if not errors:
        return None
    if is_about_time:
        message = "One or more records have been rejected due to invalid timestamp"
        return Refused(ErrorCode.INVALID_TIMESTAMP, message, tuple(errors))
    shown = "; ".join(f"record {index}: {reason}" for index, reason in errors[:_SHOWN])
    message = f"{len(errors)} records have been rejected, the first of them: {shown}"
    return Refused(ErrorCode.INVALID_RECORD, message, tuple(errors))


def _wrong_time(
    time_ms: int, config: LogConfig, now_ms: int, *, claims_broker_time: bool
) -> str | None:
    if config.log_append_time or time_ms == NO_TIMESTAMP:
        if claims_broker_time:
            return "Producer should not set timestamp type to LogAppendTime"
        return None
    oldest, newest = now_ms - config.timestamp_before_ms, now_ms + config.timestamp_after_ms
    if oldest <= time_ms <= newest:
        return None
    return f"Timestamp {time_ms} is out of range, it should be within [{oldest}, {newest}]"
