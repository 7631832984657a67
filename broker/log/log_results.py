"""Results of reads and appends of a log, with Kafka's errors as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from urteil.broker.log.batch_scan import end_of_batches
from urteil.broker.wire.errors import ErrorCode


@dataclass(frozen=True, slots=True)
class AppendResult:
    """The result of an append. Offsets are -1 if nothing was written. Offsets together with an
    error: the batch was written, but may be truncated later.

    `duplicate`: nothing was written; the offsets are those of the batch's first append.
    """

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    base_offset: int = -1
    last_offset: int = -1
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    duplicate: bool = False
    record_errors: tuple[tuple[int, str], ...] = ()  # (index in the batch, reason)


@dataclass(slots=True)
class ReadResult:
    """Consecutive batches of `size` bytes: buffers, or a `FileRange` if requested.

    The first batch may begin before the requested offset. The last one may be incomplete, as in
    Kafka; clients drop it. `more`: further segments below the bound have records.
    """

    error: ErrorCode = ErrorCode.NONE
    records: list[Any] = field(default_factory=list)
    size: int = 0
    offset: int = -1
    more: bool = False

    @property
    def next_offset(self) -> int:
        """The offset after the last complete batch, from the batch heads; not for a `FileRange`."""
        after = self.offset
        for data in self.records:
            after = end_of_batches(data, after)
        return after


class TimestampOffset(NamedTuple):
    """A record found by time: timestamp in ms, offset, leader epoch."""

    timestamp_ms: int
    offset: int
    leader_epoch: int
