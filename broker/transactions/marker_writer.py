"""Writes transaction markers to the partitions that this broker leads."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Sequence

from urteil.broker.base.clock import Clock
from urteil.broker.config.broker_config import BrokerConfig
from urteil.broker.groups.coordinator import OFFSETS_TOPIC, GroupCoordinator
from urteil.broker.replication.replica_manager import ReplicaManager
from urteil.broker.transactions.marker_sender import Marker, Order, Outcome
from urteil.broker.wire.batches import build_batch
from urteil.broker.wire.errors import ErrorCode

_KEY = struct.Struct(">hh")
_VALUE = struct.Struct(">hi")


def marker_batch(marker: Marker, now_ms: int) -> bytes:
    """A control batch as Kafka writes it (`EndTransactionMarker`)."""
    record = (_KEY.pack(0, marker.commit), _VALUE.pack(0, marker.coordinator_epoch), (), now_ms)
    return build_batch(
        [record],
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        transactional=True,
        control=True,
    )


class MarkerWriter:
    """Writes markers with acks=all; a marker in the offsets topic makes offsets visible."""

    def __init__(
        self, config: BrokerConfig, replicas: ReplicaManager, groups: GroupCoordinator, clock: Clock
    ) -> None:
        self._timeout_ms = config.request_timeout_ms
        self._replicas = replicas
        self._groups = groups
        self._clock = clock

    async def write(self, orders: Sequence[Order]) -> list[Outcome]:
        """Write the markers; returns the error of each partition, for each order."""
        return list(await asyncio.gather(*(self._write(*order) for order in orders)))

    async def _write(self, marker: Marker, partitions: Sequence[tuple[str, int]]) -> Outcome:
        batch = memoryview(marker_batch(marker, self._clock.now_ms()))
        answers = await self._replicas.append(
            self._timeout_ms, -1, dict.fromkeys(partitions, batch), internal=True
        )
        for (topic, partition), answer in answers.items():
            if topic == OFFSETS_TOPIC and answer.error is ErrorCode.NONE:
                self._groups.transaction_ended(
                    partition, marker.producer_id, answer.base_offset, commit=marker.commit
                )
        return {key: answer.error for key, answer in answers.items()}
