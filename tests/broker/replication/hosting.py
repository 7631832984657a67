"""A replica manager over real logs in folders of the test; no network, no controller."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from tests.broker.log.damage import Unsynced
from urteil.broker.base.offload import Offload, run_steps
from urteil.broker.log.log_manager import LogManager
from urteil.broker.log.storage import Storage
from urteil.broker.replication.metadata_cache import MetadataCache
from urteil.broker.replication.replica_manager import ReplicaManager
from urteil.broker.replication.role_changes import RoleChanges
from urteil.broker.wire.messages import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    UpdateMetadataRequest,
)

TOPIC_ID = UUID(int=7)
NOW_MS = 1_700_000_000_000


class StillClock:
    """Time that the test moves."""

    def __init__(self) -> None:
        self.ms = 0.0

    def monotonic_ms(self) -> float:
        return self.ms

    def now_ms(self) -> int:
        return NOW_MS + int(self.ms)


class Hosting:
    """Broker 1 with log directories; needs a running loop."""

    def __init__(
        self,
        dirs: list[Path],
        *,
        storage: Storage | None = None,
        props: Mapping[str, str] | None = None,
        overrides: Callable[[str], Mapping[str, str]] = lambda _: {},
    ) -> None:
        self.clock = StillClock()
        self.props = {"broker.id": "1", **(props or {})}
        self.metadata = MetadataCache()
        self.logs = LogManager(
            dirs,
            self.props,
            self.clock,
            storage=storage or Unsynced(),
        )
        self.logs.load("cluster")
        config: Any = SimpleNamespace(
            num_replica_fetchers=1,
            broker_id=1,
            properties=self.props,
            replica_lag_time_max_ms=10_000,
            replica_fetch_max_bytes=500,
            replica_fetch_backoff_ms=1000,
        )
        channels: Any = None

        async def never(_: Any) -> Any:
            raise AssertionError("nothing to ask the controller")

        self.replicas = ReplicaManager(
            config=config,
            clock=self.clock,
            logs=self.logs,
            metadata=self.metadata,
            channels=channels,
            broker_epoch=lambda: 5,
            ask_controller=never,
            topic_overrides=overrides,
            offload=Offload(),
        )
        self.control = RoleChanges(self.replicas, self.metadata, lambda: 5, "PLAINTEXT")

    def lead(
        self,
        partition: int,
        *,
        is_new: bool = True,
        epoch: int = 0,
        replicas: tuple[int, ...] = (1,),
        isr: tuple[int, ...] | None = None,
        topic: str = "t",
        leader: int = 1,
    ) -> int:
        """Take the leadership of `<topic>-<partition>`, unless another is to have it; returns the
        error."""
        state = LeaderAndIsrRequest.LeaderAndIsrPartitionState(
            partition_index=partition,
            controller_epoch=1,
            leader=leader,
            leader_epoch=epoch,
            isr=replicas if isr is None else isr,
            partition_epoch=epoch,
            replicas=replicas,
            is_new=is_new,
        )
        states = LeaderAndIsrRequest.LeaderAndIsrTopicState(
            topic_name=topic, topic_id=TOPIC_ID, partition_states=[state]
        )
        request = LeaderAndIsrRequest(
            controller_id=1, controller_epoch=1, broker_epoch=5, topic_states=[states]
        )
        answer: LeaderAndIsrResponse = run_steps(self.control.leader_and_isr(request))
        return answer.partition_errors[0].error_code

    def announce_topic(self, topic: str, *, epoch: int = 0, partitions: int = 1) -> None:
        """Apply UpdateMetadata for a topic that this broker leads."""
        kind = UpdateMetadataRequest
        states = [
            kind.UpdateMetadataPartitionState(
                partition_index=number, leader=1, leader_epoch=epoch, isr=(1,), replicas=(1,)
            )
            for number in range(partitions)
        ]
        topic_state = kind.UpdateMetadataTopicState(
            topic_name=topic, topic_id=TOPIC_ID, partition_states=states
        )
        self.metadata.update(kind(controller_id=1, topic_states=[topic_state]))

    def close(self) -> None:
        for log in (*self.logs.logs(), *self.logs.futures()):
            log.close_files()
        for directory in self.logs.directories:
            directory.close()
