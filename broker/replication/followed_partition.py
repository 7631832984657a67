"""One followed partition: the next fetch from its leader, and the use of the response."""

from __future__ import annotations

import logging

from urteil.broker.replication.overlapping_append import append_overlapping
from urteil.broker.replication.partition import Partition
from urteil.broker.replication.replication_throttle import is_listed
from urteil.broker.replication.truncation import truncation_point
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import FetchRequest, FetchResponse

log = logging.getLogger("follower")


class FollowedPartition:
    """A partition that follows one leader in one leader epoch; replaced when either changes."""

    __slots__ = (
        "is_behind", "key", "last_error", "leader_epoch", "partition", "retry_at_ms", "wire_key",
    )  # fmt: skip

    def __init__(self, partition: Partition) -> None:
        self.key = (partition.topic, partition.partition)
        self.wire_key = (partition.topic_id, partition.partition)
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self.retry_at_ms = 0.0
        self.last_error = ErrorCode.NONE
        self.is_behind = True  # the leader's last known high watermark
        # Without epochs (old message formats) the logs certainly agree only up to the high
        # watermark.
        if partition.log.latest_epoch < 0:
            self._truncate(partition.log.high_watermark)

    @property
    def is_throttled(self) -> bool:
        """Whether the topic's settings throttle this replica (KIP-73)."""
        partition = self.partition
        replicas = partition.log.config.follower_replication_throttled_replicas
        return bool(replicas) and is_listed(replicas, partition.partition, partition.broker_id)

    def position(self) -> tuple[int, int, int, int]:
        """(end offset, leader epoch, last epoch in the log, start offset).

        By the last epoch the leader detects a divergence of the logs.
        """
        plog = self.partition.log
        return plog.log_end_offset, self.leader_epoch, plog.latest_epoch, plog.log_start_offset

    def request(self, max_bytes: int) -> FetchRequest.FetchPartition:
        """The next fetch, from the current position."""
        fetch_offset, leader_epoch, last_epoch, start_offset = self.position()
        return FetchRequest.FetchPartition(
            partition=self.partition.partition,
            current_leader_epoch=leader_epoch,
            fetch_offset=fetch_offset,
            last_fetched_epoch=last_epoch,
            log_start_offset=start_offset,
            partition_max_bytes=max_bytes,
        )

    def apply_response(self, data: FetchResponse.PartitionData, wall_ms: int) -> ErrorCode:
        """Append the records or truncate to the diverging epoch. Raises OSError."""
        self.last_error = ErrorCode.NONE
        diverging = data.diverging_epoch
        if diverging.end_offset >= 0 or diverging.epoch >= 0:
            plog = self.partition.log
            self._truncate(truncation_point(plog, diverging.epoch, diverging.end_offset))
            return ErrorCode.NONE
        records = data.records
        if records:
            assert isinstance(records, memoryview)  # decoded records are one buffer
            appended = append_overlapping(self.partition.log, records, wall_ms)
            if self.partition.log.failure is not None:
                raise self.partition.log.failure
            if appended.error is not ErrorCode.NONE:
                log.warning("%s: %s %s", self.partition, appended.error.name, appended.message)
                return appended.error
        self._adopt_watermarks(data.high_watermark, data.log_start_offset)
        return ErrorCode.NONE

    def _adopt_watermarks(self, high_watermark: int, leader_start: int) -> None:
        plog = self.partition.log
        self.is_behind = plog.log_end_offset < high_watermark
        target = min(high_watermark, plog.log_end_offset)
        if target > plog.high_watermark:
            plog.update_high_watermark(target)
            self.partition.on_committed.notify()
        if plog.log_start_offset < leader_start <= plog.high_watermark:
            plog.increment_log_start_offset(leader_start)

    def truncate_to(self, leader_end: int) -> None:
        """Truncate to the end of the leader's log, which is before ours."""
        self._truncate(leader_end)

    def restart_from(self, leader_start: int) -> None:
        """Empty the log and restart at the leader's log start, if that is beyond our end."""
        plog = self.partition.log
        if leader_start > plog.log_end_offset:
            log.warning("%s: restarting at offset %d", self.partition, leader_start)
            plog.truncate_fully_and_start_at(leader_start)

    def _truncate(self, offset: int) -> None:
        """Truncate to `offset`, even to the log's end: this drops an epoch that began there without
        a record, which the leader would report as diverging again and again."""
        plog = self.partition.log
        if offset < plog.high_watermark:
            log.warning(
                "%s: truncating to %d, below the high watermark %d",
                self.partition, offset, plog.high_watermark,
            )  # fmt: skip
        if offset < plog.log_end_offset:
            log.info("%s: truncating from %d to %d", self.partition, plog.log_end_offset, offset)
        plog.truncate_to(offset)
