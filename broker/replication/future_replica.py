"""A copy of a partition's log in another directory that follows the log step by step.

Source: `ReplicaAlterLogDirsThread` and `Partition.maybeReplaceCurrentWithFutureReplica` of Apache
Kafka 3.9 (KIP-113).
"""

from __future__ import annotations

import logging

from urteil.broker.replication.overlapping_append import append_overlapping
from urteil.broker.replication.partition import Partition
from urteil.broker.replication.truncation import truncation_point
from urteil.broker.wire.errors import ErrorCode

log = logging.getLogger("moves")


class FutureReplica:
    """Follows `partition.log` with `partition.future`."""

    __slots__ = ("_generation", "last_error", "partition", "retry_at_ms")

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.retry_at_ms = 0.0
        self.last_error = ErrorCode.NONE
        self._generation = -1  # the generation of the log at the last truncation of the copy

    @property
    def is_caught_up(self) -> bool:
        """Whether the copy has all records of the log."""
        current, future = self.partition.log, self.partition.future
        return (
            future is not None
            and self._generation == current.generation
            and future.log_end_offset == current.log_end_offset
        )

    def copy_batches(self, max_bytes: int, wall_ms: int) -> int:
        """Copy the next batches, at least one; return their bytes.

        `last_error` is the error if none were copied. An OSError is reported to the log or to the
        copy, whichever raised it.
        """
        current, future = self.partition.log, self.partition.future
        assert future is not None
        self.last_error = ErrorCode.NONE
        try:
            self._truncate_to_log()
        except OSError as failure:
            future.fail(failure)
            self.last_error = ErrorCode.KAFKA_STORAGE_ERROR
            return 0
        start = future.log_end_offset
        try:
            read = current.read(start, max_bytes, upto=current.log_end_offset)
        except OSError as failure:
            current.handle_read_error(failure)
            self.last_error = ErrorCode.KAFKA_STORAGE_ERROR
            return 0
        self.last_error = read.error
        if read.error is ErrorCode.NONE and read.size:
            data = memoryview(b"".join(read.records))
            self.last_error = self._append(data, wall_ms)
        if self.last_error is ErrorCode.NONE:
            self._adopt_watermarks()
        return read.size

    def _append(self, data: memoryview, wall_ms: int) -> ErrorCode:
        future = self.partition.future
        assert future is not None
        try:
            return append_overlapping(future, data, wall_ms).error
        except OSError as failure:
            future.fail(failure)
            return ErrorCode.KAFKA_STORAGE_ERROR

    def _truncate_to_log(self) -> None:
        """Remove records that the log does not have, also after a truncation of the log."""
        current, future = self.partition.log, self.partition.future
        assert future is not None
        if self._generation != current.generation:
            self._generation = current.generation
            for _ in range(len(future.epochs.entries) + 1):
                known = future.latest_epoch
                epoch, end_offset = current.epoch_end_offset(known)
                future.truncate_to(truncation_point(future, epoch, end_offset))
                if epoch == known:
                    break
            future.truncate_to(current.log_end_offset)
        if future.log_end_offset < current.log_start_offset:
            future.truncate_fully_and_start_at(current.log_start_offset)

    def _adopt_watermarks(self) -> None:
        current, future = self.partition.log, self.partition.future
        assert future is not None
        future.update_high_watermark(current.high_watermark)
        start = min(current.log_start_offset, future.high_watermark)
        if start > future.log_start_offset:
            future.increment_log_start_offset(start)
            self.partition.on_low_watermark.notify()

    def adopt_log_state(self) -> None:
        """Prepare the copy to replace the log: adopt the settings and the epochs without batches,
        which began at the end of the log. Raises OSError."""
        current, future = self.partition.log, self.partition.future
        assert future is not None
        for epoch, start_offset in current.epochs.entries:
            if epoch > future.latest_epoch:
                future.assign_epoch_start(epoch, start_offset)
        future.config = current.config
