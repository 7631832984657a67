"""The wait of a produce request with acks=all for its replicas (Kafka's `DelayedProduce`)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from urteil.broker.base.purgatory import DelayedOperation, Purgatory
from urteil.broker.replication.partition import Partition
from urteil.broker.wire.errors import ErrorCode

if TYPE_CHECKING:
    from urteil.broker.log.partition_log import AppendResult

TopicPartition = tuple[str, int]


class Acknowledgement:
    """acks=all: delays the results until each partition's high watermark has passed."""

    def __init__(
        self,
        results: dict[TopicPartition, AppendResult],
        waiting: dict[TopicPartition, Partition],
        purgatory: Purgatory,
    ) -> None:
        self._results = results
        self._waiting = waiting
        self._purgatory = purgatory

    async def wait(self, timeout_ms: int) -> None:
        watched = [partition.on_committed for partition in self._waiting.values()]
        await DelayedOperation(self._update, self._time_out, self._purgatory).wait(
            watched, timeout_ms
        )

    def _update(self) -> bool | None:
        for key, partition in list(self._waiting.items()):
            error = partition.acknowledgement(self._results[key].last_offset + 1)
            if error is not None:
                self._settle(key, error)
        return None if self._waiting else True

    def _time_out(self) -> bool:
        for key in list(self._waiting):
            self._settle(key, ErrorCode.REQUEST_TIMED_OUT)
        return True

    def _settle(self, key: TopicPartition, error: ErrorCode) -> None:
        del self._waiting[key]
        if error is not ErrorCode.NONE:
            self._results[key] = replace(self._results[key], error=error)
