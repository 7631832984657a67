"""A partition over a real log in a folder; the test controls its time and proposals."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

from urteil.broker.log.log_config import LogConfig
from urteil.broker.log.partition_log import PartitionLog
from urteil.broker.log.storage import Storage
from urteil.broker.replication.partition import Partition, State
from urteil.broker.wire.batches import build_batch

TOPIC_ID = UUID(int=7)
MAX_LAG_MS = 10_000


class Plain:
    """Partition `t-0` of broker `broker_id` with replicas 1, 2, 3."""

    def __init__(self, folder: Path, *, broker_id: int = 1, min_isr: int = 1) -> None:
        folder.mkdir()
        self.proposed: list[tuple[int, ...]] = []
        self.alive = {1, 2, 3}
        self.log = PartitionLog(
            Storage(), folder, "t", 0, TOPIC_ID, LogConfig(min_insync_replicas=min_isr), 0
        )
        self.partition = Partition(
            "t", 0, self.log, broker_id, MAX_LAG_MS, self._propose, self.alive.__contains__
        )

    def _propose(self, partition: Partition) -> None:
        assert partition.isr.proposed is not None
        self.proposed.append(partition.isr.proposed)

    def append(self, count: int = 1, *, acks: int = 1, now_ms: float = 0.0) -> object:
        return self.partition.append(records(count), acks, 1000, now_ms).error


def records(count: int, *, leader_epoch: int = 0, base_offset: int = 0) -> memoryview:
    return memoryview(
        build_batch(
            [(None, b"v%d" % number, (), 1000) for number in range(count)],
            base_offset=base_offset,
            leader_epoch=leader_epoch,
        )
    )


def state(
    leader: int,
    leader_epoch: int,
    isr: tuple[int, ...] = (1, 2, 3),
    *,
    partition_epoch: int | None = None,
    replicas: tuple[int, ...] = (1, 2, 3),
) -> State:
    return State(
        partition_index=0,
        controller_epoch=1,
        leader=leader,
        leader_epoch=leader_epoch,
        isr=isr,
        partition_epoch=leader_epoch if partition_epoch is None else partition_epoch,
        replicas=replicas,
    )
