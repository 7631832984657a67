"""DeleteRecords: the leader's log begins later, and answers once every live replica's does.

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
    """What became of it: the first offset that some live replica still has."""

    error: ErrorCode
    low_watermark: int = UNKNOWN_OFFSET


class RecordDeletion:
    """One request's deletions; those not done in time are REQUEST_TIMED_OUT, though the leader's
    part is done and the followers' goes on."""

    def __init__(self, replicas: ReplicaManager) -> None:
        self._replicas = replicas
        self._answers: dict[TopicPartition, DeletionResult] = {}
        self._waiting: dict[TopicPartition, tuple[Partition, int]] = {}

    async def run(
        self, offsets: Mapping[TopicPartition, int], timeout_ms: int
    ) -> dict[TopicPartition, DeletionResult]:
        """Delete what lies before the offsets (-1: the high watermark); an answer for each."""
        for key, offset in offsets.items():
            self._begin(key, offset)
        if self._waiting:
            watched = [partition.on_low_watermark for partition, _ in self._waiting.values()]
            purgatory = self._replicas.purgatories["DeleteRecords"]
            await DelayedOperation(self._look, self._time_out, purgatory).wait(watched, timeout_ms)
        return {key: self._answers[key] for key in offsets}

    def _begin(self, key: TopicPartition, offset: int) -> None:
        partition, error = self._replicas.hosted(*key)
        if partition is None:
            self._answers[key] = DeletionResult(error)
            return
        try:
            wanted = partition.delete_records(offset)
        except OSError as failure:
            partition.log.fail(failure)
            wanted = ErrorCode.KAFKA_STORAGE_ERROR
        if isinstance(wanted, ErrorCode):
            self._answers[key] = DeletionResult(wanted)
        else:
            self._answers[key] = DeletionResult(ErrorCode.NONE, partition.low_watermark)
            if partition.low_watermark < wanted:
                self._waiting[key] = (partition, wanted)

    def _look(self) -> bool | None:
        for key, (partition, wanted) in list(self._waiting.items()):
            if partition.is_retired:
                answer = DeletionResult(partition.gone)
            elif not partition.is_leader:
                answer = DeletionResult(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            elif partition.low_watermark >= wanted:
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
