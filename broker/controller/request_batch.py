"""The requests that announce changes to the brokers, collected and then built per broker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from urteil.broker.controller.controller_context import ControllerContext
from urteil.broker.controller.statuses import TopicPartition
from urteil.broker.wire.messages import (
    LeaderAndIsrRequest,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from urteil.broker.wire.primitives import ZERO_UUID
from urteil.broker.zookeeper.znodes import BrokerInfo, PartitionState

LEADER_DURING_DELETE = -2
EPOCH_DURING_DELETE = -2
NO_EPOCH = -3  # of a partition that never had a leader
PROTOCOL_IDS = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}

Request = LeaderAndIsrRequest | UpdateMetadataRequest | StopReplicaRequest


class RequestBatch:
    """Collects partitions and their receivers; `build` reads the states from the context.

    LeaderAndIsr goes to replicas, UpdateMetadata to every registered broker. Each request carries
    the epoch of its receiver. Unregistered brokers receive nothing.
    """

    def __init__(self, context: ControllerContext, listener: str) -> None:
        self._context = context
        self._listener = listener
        self._leader_and_isr: dict[int, dict[TopicPartition, bool]] = {}
        self._update: dict[int, set[TopicPartition]] = {}
        self._stop: dict[int, dict[TopicPartition, bool]] = {}
        self._roles: dict[
            tuple[TopicPartition, bool], LeaderAndIsrRequest.LeaderAndIsrPartitionState
        ] = {}
        self._metadata_states: dict[
            TopicPartition, UpdateMetadataRequest.UpdateMetadataPartitionState
        ] = {}

    def announce(self, tp: TopicPartition, *, is_new: bool = False) -> None:
        """Announce a new state: LeaderAndIsr to its replicas, UpdateMetadata to all brokers."""
        self.leader_and_isr(tp, self._context.replicas(tp), is_new=is_new)
        self.update_metadata([tp])

    def leader_and_isr(
        self, tp: TopicPartition, brokers: Iterable[int], *, is_new: bool = False
    ) -> None:
        for broker in brokers:
            states = self._leader_and_isr.setdefault(broker, {})
            states[tp] = states.get(tp, False) or is_new

    def update_metadata(
        self, tps: Iterable[TopicPartition], brokers: Iterable[int] | None = None
    ) -> None:
        """Announce partition states and the live brokers; `brokers` None means all brokers."""
        tps = list(tps)
        for broker in self._context.present if brokers is None else brokers:
            self._update.setdefault(broker, set()).update(tps)

    def stop_replica(self, broker: int, tp: TopicPartition, *, delete: bool) -> None:
        """Stop a replica; LeaderAndIsr for the partition is then left out for this broker.

        As a follower it would fetch and seem about to join the ISR, and the high watermark would
        wait for it.
        """
        self._stop.setdefault(broker, {})[tp] = delete

    def build(self) -> dict[int, list[Request]]:
        """Requests by broker, in sending order. Equal partition states are shared objects."""
        self._roles, self._metadata_states = {}, {}
        requests: dict[int, list[Request]] = {}
        for broker in sorted(self._context.present):
            built = [
                self._build_stop(broker),  # first, since it may end a leadership
                self._build_leader_and_isr(broker),
                self._build_update(broker),
            ]
            requests[broker] = [request for request in built if request is not None]
        return requests

    def _head(self, broker: int) -> dict[str, Any]:
        return {
            "controller_id": self._context.controller_id,
            "controller_epoch": self._context.epoch,
            "broker_epoch": self._context.brokers[broker].epoch,
        }

    def _build_leader_and_isr(self, broker: int) -> LeaderAndIsrRequest | None:
        stopped = self._stop.get(broker, {})
        requested = sorted(self._leader_and_isr.get(broker, {}).items())
        current = [(tp, is_new) for tp, is_new in requested if tp not in stopped]
        if not current:
            return None
        topics: dict[str, list[LeaderAndIsrRequest.LeaderAndIsrPartitionState]] = {}
        leaders = set()
        for tp, is_new in current:
            state = self._context.states.get(tp)
            if state is not None:
                role = self._roles.get((tp, is_new))
                if role is None:
                    role = self._roles[tp, is_new] = self._partition(tp, state, is_new)
                topics.setdefault(tp[0], []).append(role)
                leaders.add(state.leader)
        return LeaderAndIsrRequest(
            **self._head(broker),
            topic_states=[
                LeaderAndIsrRequest.LeaderAndIsrTopicState(
                    topic_name=topic, topic_id=self._topic_id(topic), partition_states=states
                )
                for topic, states in topics.items()
            ],
            live_leaders=[
                self._live_leader(self._context.brokers[broker_id])
                for broker_id in sorted(leaders & self._context.present)
            ],
        )

    def _partition(
        self, tp: TopicPartition, state: PartitionState, is_new: bool
    ) -> LeaderAndIsrRequest.LeaderAndIsrPartitionState:
        assignment = self._context.assignment(tp)
        return LeaderAndIsrRequest.LeaderAndIsrPartitionState(
            partition_index=tp[1],
            controller_epoch=state.controller_epoch,
            leader=state.leader,
            leader_epoch=state.leader_epoch,
            isr=state.isr,
            partition_epoch=state.partition_epoch,
            replicas=assignment.replicas,
            adding_replicas=assignment.adding,
            removing_replicas=assignment.removing,
            is_new=is_new,
            leader_recovery_state=state.recovery_state,
        )

    def _live_leader(self, info: BrokerInfo) -> LeaderAndIsrRequest.LeaderAndIsrLiveLeader:
        endpoint = info.endpoint(self._listener)
        return LeaderAndIsrRequest.LeaderAndIsrLiveLeader(
            broker_id=info.id,
            host_name=endpoint.host if endpoint else "",
            port=endpoint.port if endpoint else -1,
        )

    def _build_update(self, broker: int) -> UpdateMetadataRequest | None:
        updated = self._update.get(broker)
        if updated is None:
            return None
        topics: dict[str, list[UpdateMetadataRequest.UpdateMetadataPartitionState]] = {}
        for tp in sorted(updated):
            state = self._context.states.get(tp)
            if state is not None or tp[0] in self._context.deleting:
                metadata = self._metadata_states.get(tp)
                if metadata is None:
                    metadata = self._metadata_states[tp] = self._metadata(tp, state)
                topics.setdefault(tp[0], []).append(metadata)
        return UpdateMetadataRequest(
            **self._head(broker),
            topic_states=[
                UpdateMetadataRequest.UpdateMetadataTopicState(
                    topic_name=topic, topic_id=self._topic_id(topic), partition_states=states
                )
                for topic, states in topics.items()
            ],
            live_brokers=[
                live_broker(self._context.brokers[live]) for live in sorted(self._context.present)
            ],
        )

    def _metadata(
        self, tp: TopicPartition, state: PartitionState | None
    ) -> UpdateMetadataRequest.UpdateMetadataPartitionState:
        if state is None or tp[0] in self._context.deleting:
            state = PartitionState(
                leader=LEADER_DURING_DELETE,
                leader_epoch=state.leader_epoch if state else NO_EPOCH,
                isr=state.isr if state else (),
                controller_epoch=self._context.epoch,
                partition_epoch=state.partition_epoch if state else 0,
            )
        replicas, live = self._context.replicas(tp), self._context.live_for(tp)
        return UpdateMetadataRequest.UpdateMetadataPartitionState(
            partition_index=tp[1],
            controller_epoch=state.controller_epoch,
            leader=state.leader,
            leader_epoch=state.leader_epoch,
            isr=state.isr,
            zk_version=state.partition_epoch,
            replicas=replicas,
            offline_replicas=[replica for replica in replicas if replica not in live],
        )

    def _build_stop(self, broker: int) -> StopReplicaRequest | None:
        deletions = self._stop.get(broker)
        if not deletions:
            return None
        topics: dict[str, list[StopReplicaRequest.StopReplicaPartitionState]] = {}
        for tp, delete in sorted(deletions.items()):
            topics.setdefault(tp[0], []).append(
                StopReplicaRequest.StopReplicaPartitionState(
                    partition_index=tp[1],
                    leader_epoch=self._stop_epoch(tp),
                    delete_partition=delete,
                )
            )
        return StopReplicaRequest(
            **self._head(broker),
            topic_states=[
                StopReplicaRequest.StopReplicaTopicState(topic_name=topic, partition_states=states)
                for topic, states in topics.items()
            ],
        )

    def _stop_epoch(self, tp: TopicPartition) -> int:
        if tp[0] in self._context.deleting:
            return EPOCH_DURING_DELETE
        state = self._context.states.get(tp)
        return state.leader_epoch if state else NO_EPOCH

    def _topic_id(self, topic: str) -> UUID:
        return self._context.topics[topic].topic_id or ZERO_UUID


def live_broker(info: BrokerInfo) -> UpdateMetadataRequest.UpdateMetadataBroker:
    """A broker in the form of UpdateMetadata, with every listener."""
    return UpdateMetadataRequest.UpdateMetadataBroker(
        id=info.id,
        endpoints=[
            UpdateMetadataRequest.UpdateMetadataEndpoint(
                port=endpoint.port,
                host=endpoint.host,
                listener=endpoint.listener,
                security_protocol=PROTOCOL_IDS.get(endpoint.protocol, 0),
            )
            for endpoint in info.endpoints
        ],
        rack=info.rack,
    )


def partitions_in(request: StopReplicaRequest) -> Mapping[TopicPartition, bool]:
    """The partitions of a StopReplica request, each with its delete flag."""
    return {
        (topic.topic_name, partition.partition_index): partition.delete_partition
        for topic in request.topic_states
        for partition in topic.partition_states
    }
