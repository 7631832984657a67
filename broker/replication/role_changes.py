"""Role changes of replicas by the controller: LeaderAndIsr, StopReplica and UpdateMetadata.

Each is fenced by controller epoch, broker epoch, topic id and leader epoch, in this order
(`ReplicaManager.becomeLeaderOrFollower`, `stopReplicas` of Apache Kafka 3.9).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from urteil.broker.base.offload import STEP, Steps
from urteil.broker.net.channels import Endpoint
from urteil.broker.replication.partition import Partition, State
from urteil.broker.replication.replica_manager import ReplicaManager
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
)
from urteil.broker.wire.primitives import ZERO_UUID

if TYPE_CHECKING:
    from urteil.broker.replication.metadata_cache import MetadataCache

log = logging.getLogger("control")

PartitionState = tuple[str, UpdateMetadataRequest.UpdateMetadataPartitionState]
EPOCH_DURING_DELETE = -2
NO_EPOCH = -3


@dataclass(frozen=True, slots=True)
class _Stop:
    topic: str
    partition: int
    leader_epoch: int
    delete: bool


class RoleChanges:
    """Applies the controller's requests; the only place where roles change."""

    def __init__(
        self,
        replicas: ReplicaManager,
        metadata: MetadataCache,
        broker_epoch: Callable[[], int],
        inter_broker_listener: str,
    ) -> None:
        self._replicas = replicas
        self._metadata = metadata
        self._broker_epoch = broker_epoch
        self._listener = inter_broker_listener
        self.turn = asyncio.Lock()
        """Held during each request of a controller, so that requests are applied one after another
        (Kafka's `replicaStateChangeLock`)."""

    def fence(self, controller_epoch: int, broker_epoch: int) -> ErrorCode:
        """Check the epochs of a request and adopt a newer controller epoch.

        STALE_BROKER_EPOCH for a request to an earlier session of this broker (KIP-380),
        STALE_CONTROLLER_EPOCH for one of an older controller.
        """
        if 0 <= broker_epoch < self._broker_epoch():
            return ErrorCode.STALE_BROKER_EPOCH
        if controller_epoch < self._replicas.controller_epoch:
            return ErrorCode.STALE_CONTROLLER_EPOCH
        self._replicas.controller_epoch = controller_epoch
        return ErrorCode.NONE

    # -- LeaderAndIsr ---------------------------------------------------------------------------

    def leader_and_isr(self, request: LeaderAndIsrRequest) -> Steps[LeaderAndIsrResponse]:
        """Apply the requested roles, one partition a step, and create missing logs. The topics'
        settings must be known before."""
        states = list(states_of(request))
        error = self.fence(request.controller_epoch, request.broker_epoch)
        if error is not ErrorCode.NONE:
            log.warning(
                "LeaderAndIsr of controller %d epoch %d refused: %s",
                request.controller_id, request.controller_epoch, error.name,
            )  # fmt: skip
            refused = [
                (name, topic_id, state.partition_index, error) for name, topic_id, state in states
            ]
            return _leader_and_isr_response(refused, error)
        leaders = {
            live.broker_id: Endpoint(live.broker_id, live.host_name, live.port)
            for live in request.live_leaders
        }
        outcomes = []
        for topic, topic_id, state in states:
            outcome = self._apply(topic, topic_id, state, leaders)
            outcomes.append((topic, topic_id, state.partition_index, outcome))
            yield STEP
        self._replicas.fetchers.close_idle()
        return _leader_and_isr_response(outcomes)

    def _apply(
        self, topic: str, topic_id: UUID, state: State, leaders: dict[int, Endpoint]
    ) -> ErrorCode:
        if (topic, state.partition_index) in self._replicas.offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        known = self._replicas.partition(topic, state.partition_index)
        if known is not None:
            if ZERO_UUID not in (topic_id, known.topic_id) and topic_id != known.topic_id:
                log.error("%s: topic id %s, not %s", known, known.topic_id, topic_id)
                return ErrorCode.INCONSISTENT_TOPIC_ID
            if state.leader_epoch < known.leader_epoch:
                return ErrorCode.STALE_CONTROLLER_EPOCH
        if self._replicas.broker_id not in state.replicas:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        try:
            partition = self._replicas.host(
                topic, state.partition_index, topic_id, is_new=state.is_new
            )
            if ZERO_UUID not in (topic_id, partition.topic_id) and topic_id != partition.topic_id:
                log.error(
                    "%s: its files have topic id %s, not %s: if the topic was not recreated, "
                    "partition.metadata in %s is damaged; delete it and restart the broker",
                    partition, partition.topic_id, topic_id, partition.log.directory,
                )  # fmt: skip
                self._replicas.drop(topic, state.partition_index, delete=False)
                return ErrorCode.INCONSISTENT_TOPIC_ID
        except OSError as failure:
            log.error("%s-%d is offline: %s", topic, state.partition_index, failure)
            self._replicas.mark_offline(topic, state.partition_index)
            return ErrorCode.KAFKA_STORAGE_ERROR
        try:
            return self._apply_role(partition, state, leaders)
        except OSError as failure:
            partition.log.fail(failure)
            return ErrorCode.KAFKA_STORAGE_ERROR

    def _apply_role(
        self, partition: Partition, state: State, leaders: dict[int, Endpoint]
    ) -> ErrorCode:
        was_leader, old_epoch = partition.is_leader, partition.leader_epoch
        if state.leader == self._replicas.broker_id:
            self._lead(partition, state)
        else:
            self._follow(partition, state, leaders)
        if partition.is_leader != was_leader or partition.leader_epoch != old_epoch:
            log.info(
                "%s: %s at leader epoch %d, ISR %s",
                partition,
                "leads" if partition.is_leader else f"follows {partition.leader_id}",
                partition.leader_epoch, list(state.isr),
            )  # fmt: skip
            self._replicas.notify_leadership(partition)
        return ErrorCode.NONE

    def _lead(self, partition: Partition, state: State) -> None:
        self._replicas.fetchers.remove([(partition.topic, partition.partition)])
        partition.become_leader(state, self._replicas.monotonic_ms())

    def _follow(self, partition: Partition, state: State, leaders: dict[int, Endpoint]) -> None:
        key = (partition.topic, partition.partition)
        if not partition.become_follower(state) and self._replicas.fetchers.is_following(key):
            return
        self._replicas.fetchers.remove([key])
        leader = leaders.get(state.leader) or self._metadata.endpoint(state.leader, self._listener)
        if leader is not None:
            self._replicas.fetchers.add(leader, partition)
        elif state.leader >= 0:
            log.error("%s: leader %d is not alive", partition, state.leader)

    # -- UpdateMetadata -------------------------------------------------------------------------

    def apply_metadata(self, states: Iterable[PartitionState]) -> None:
        """Apply UpdateMetadata to hosted partitions: a newer leader epoch ends this broker's role.

        After a restart LeaderAndIsr may come later, or never if the broker is not a replica any
        more; the partition is then dropped.
        """
        me = self._replicas.broker_id
        for topic, state in states:
            hosted = self._replicas.partition(topic, state.partition_index)
            if hosted is None or state.leader_epoch <= hosted.leader_epoch:
                continue
            if me not in state.replicas:
                log.info("%s: moved to replicas %s", hosted, list(state.replicas))
                self._replicas.drop(topic, state.partition_index, delete=False)
            elif hosted.is_leader and state.leader != me:
                hosted.resign()
                self._replicas.notify_leadership(hosted)

    # -- StopReplica ----------------------------------------------------------------------------

    def stop_replica(self, request: StopReplicaRequest) -> Steps[StopReplicaResponse]:
        """Stop hosting the requested replicas, one a step, and delete their logs if requested, also
        logs without a role."""
        error = self.fence(request.controller_epoch, request.broker_epoch)
        if error is not ErrorCode.NONE:
            return StopReplicaResponse(error_code=error)
        answers = []
        for stop in _list_stops(request):
            answers.append(
                StopReplicaResponse.StopReplicaPartitionError(
                    topic_name=stop.topic,
                    partition_index=stop.partition,
                    error_code=self._stop(stop),
                )
            )
            yield STEP
        self._replicas.fetchers.close_idle()
        return StopReplicaResponse(partition_errors=answers)

    def _stop(self, stop: _Stop) -> ErrorCode:
        if (stop.topic, stop.partition) in self._replicas.offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        known = self._replicas.partition(stop.topic, stop.partition)
        forced = stop.leader_epoch in (EPOCH_DURING_DELETE, NO_EPOCH)
        if known is not None and not forced and stop.leader_epoch < known.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        try:
            self._replicas.drop(stop.topic, stop.partition, delete=stop.delete)
        except OSError as failure:
            log.error("%s-%d: %s", stop.topic, stop.partition, failure)
            return ErrorCode.KAFKA_STORAGE_ERROR
        return ErrorCode.NONE


def states_of(request: LeaderAndIsrRequest) -> Iterator[tuple[str, UUID, State]]:
    """Every partition of a request of any version, with its topic id (zero if unknown)."""
    for state in request.ungrouped_partition_states:
        yield state.topic_name, ZERO_UUID, state
    for topic in request.topic_states:
        for state in topic.partition_states:
            yield topic.topic_name, topic.topic_id, state


def _leader_and_isr_response(
    outcomes: Sequence[tuple[str, UUID, int, ErrorCode]], error: ErrorCode = ErrorCode.NONE
) -> LeaderAndIsrResponse:
    """A response with the fields of all versions; the encoder selects those of its version."""
    errors: list[LeaderAndIsrResponse.LeaderAndIsrPartitionError] = []
    topics: dict[UUID, list[LeaderAndIsrResponse.LeaderAndIsrPartitionError]] = {}
    for topic, topic_id, partition, error in outcomes:
        answer = LeaderAndIsrResponse.LeaderAndIsrPartitionError(
            topic_name=topic, partition_index=partition, error_code=error
        )
        errors.append(answer)
        topics.setdefault(topic_id, []).append(answer)
    return LeaderAndIsrResponse(
        error_code=error,
        partition_errors=errors,
        topics=[
            LeaderAndIsrResponse.LeaderAndIsrTopicError(topic_id=topic_id, partition_errors=answers)
            for topic_id, answers in topics.items()
        ],
    )


def _list_stops(request: StopReplicaRequest) -> Iterator[_Stop]:
    for single in request.ungrouped_partitions:
        yield _Stop(single.topic_name, single.partition_index, NO_EPOCH, request.delete_partitions)
    for group in request.topics:
        for index in group.partition_indexes:
            yield _Stop(group.name, index, NO_EPOCH, request.delete_partitions)
    for topic in request.topic_states:
        for state in topic.partition_states:
            yield _Stop(
                topic.topic_name, state.partition_index, state.leader_epoch, state.delete_partition
            )
