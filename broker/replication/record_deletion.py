"""DeleteRecords: move the leader's log start, then wait until every live replica has moved.

Source: `ReplicaManager.deleteRecords`, `DelayedDeleteRecords` of Apache Kafka 3.9.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from urteil.broker.base.purgatory import DelayedOperation
from urteil.broker.wire.errors import ErrorCode

if TYPE_CHECKING:
    from urteil.broker.replication.partition import Partition
    from urteil.broker.replication.replica_manager import ReplicaManager, TopicPartition

log = logging.getLogger("replicas")

UNKNOWN_OFFSET = -1


@dataclass(frozen=True, slots=True)
class DeletionResult:
    """The result of a deletion: an error, or the lowest log start of all live replicas."""

    error: ErrorCode
    low_watermark: int = UNKNOWN_OFFSET


class RecordDeletion:
    """The deletions of one request. After the timeout the rest is answered REQUEST_TIMED_OUT; the
    leader has then deleted its records, and the followers will follow."""

    def __init__(self, replicas: ReplicaManager) -> None:
        self._replicas = replicas
        self._answers: dict[TopicPartition, DeletionResult] = {}
        self._waiting: dict[TopicPartition, tuple[Partition, int]] = {}

    async def run(
        self, offsets: Mapping[TopicPartition, int], timeout_ms: int
    ) -> dict[TopicPartition, DeletionResult]:
        """Delete the records before each offset (-1: the high watermark); a result for each key."""
        for key, offset in offsets.items():
            self._begin(key, offset)
        if self._waiting:
            watched = [partition.on_low_watermark for partition, _ in self._waiting.values()]
            purgatory = self._replicas.purgatories["DeleteRecords"]
            await DelayedOperation(self._update, self._time_out, purgatory).wait(
                watched, timeout_ms
            )
        return {key: self._answers[key] for key in offsets}

    def _begin(self, key: TopicPartition, offset: int) -> None:
        partition, error = self._replicas.find_partition(*key)
        if partition is None:
            self._answers[key] = DeletionResult(error)
            return
        try:
            start = partition.delete_records(offset)
        except OSError as failure:
            partition.log.fail(failure)
            start = ErrorCode.KAFKA_STORAGE_ERROR
        if isinstance(start, ErrorCode):
            self._answers[key] = DeletionResult(start)
        else:
            self._answers[key] = DeletionResult(ErrorCode.NONE, partition.low_watermark)
            if partition.low_watermark < start:
                self._waiting[key] = (partition, start)

    def _update(self) -> bool | None:
        for key, (partition, start) in list(self._waiting.items()):
            if partition.is_retired:
                answer = DeletionResult(partition.retirement_error)
            elif not partition.is_leader:
                answer = DeletionResult(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            elif partition.low_watermark >= start:
                answer = DeletionResult(ErrorCode.NONE, partition.low_watermark)
            else:
                continue
            self._answers[key] = answer
            del self._waiting[key]
        return None if self._waiting else True

    def _time_out(self) -> bool:
        for key in self._waiting:
            low_watermark = self._answers[key].low_watermark
            self._answers[key] = DeletionResult(ErrorCode.REQUEST_TIMED_OUT, low_watermark)
        return True
