"""Answers of a log; Kafka's errors are values in them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from urteil.broker.log.batch_scan import end_of_batches
from urteil.broker.wire.errors import ErrorCode


@dataclass(frozen=True, slots=True)
class AppendResult:
    """What became of an append. Offsets are -1 where nothing was written; with an error beside
    them it was, and says nothing of whether it stays.

    `duplicate`: nothing was written, the offsets are those of the batch's first append.
    """

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    base_offset: int = -1
    last_offset: int = -1
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    duplicate: bool = False
    record_errors: tuple[tuple[int, str], ...] = ()  # (place in the batch, reason)


@dataclass(slots=True)
class ReadResult:
    """Consecutive batches, `size` bytes together: buffers, or a `FileRange` where asked for.

    The first batch may begin before the offset asked for, the last one may be cut (as in
    Kafka: clients drop it), but never one that the bound would have excluded. `more`: below the
    bound there are segments beyond the one that was read.
    """

    error: ErrorCode = ErrorCode.NONE
    records: list[Any] = field(default_factory=list)
    size: int = 0
    offset: int = -1
    more: bool = False

    @property
    def next_offset(self) -> int:
        """The offset after the last whole batch; walks over the heads, so not for a `FileRange`."""
        after = self.offset
        for data in self.records:
            after = end_of_batches(data, after)
        return after


class TimestampOffset(NamedTuple):
    """A record found by time: its timestamp in ms, its offset, the epoch it was written in."""

    timestamp_ms: int
    offset: int
    leader_epoch: int
