"""The metadata cache: topics, partitions and live brokers, as the controller last sent them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from uuid import UUID

from urteil.broker.base.offload import PACE, STEP, Steps, run_steps
from urteil.broker.base.purgatory import Watchers
from urteil.broker.net.channels import Endpoint
from urteil.broker.wire.messages import UpdateMetadataRequest
from urteil.broker.wire.primitives import ZERO_UUID

NO_LEADER = -1
LEADER_DURING_DELETE = -2


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionState:
    """The state of a partition in UpdateMetadata."""

    controller_epoch: int
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int
    replicas: tuple[int, ...]
    offline_replicas: tuple[int, ...]


States = list[tuple[str, UUID, int, PartitionState]]
"""Partitions: topic, topic id (zero if unknown), index and state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveBroker:
    """A live broker: its rack and its advertised listeners."""

    id: int
    rack: str | None
    endpoints: dict[str, tuple[str, int]]

    def endpoint(self, listener: str) -> Endpoint | None:
        endpoint = self.endpoints.get(listener)
        return None if endpoint is None else Endpoint(self.id, endpoint[0], endpoint[1])


class MetadataCache:
    """Each broker has a cache of its own, which may be stale. Only UpdateMetadata and `forget`
    change it."""

    def __init__(self) -> None:
        self.topics: dict[str, dict[int, PartitionState]] = {}
        self.topic_ids: dict[str, UUID] = {}
        self.topic_names: dict[UUID, str] = {}
        self.brokers: dict[int, LiveBroker] = {}
        self.controller_id: int | None = None
        self.on_update = Watchers()
        self.terms = (-1, -1)  # epochs of this broker's registration and of the controller
        self._updated = asyncio.Event()

    async def await_first_update(self, timeout_s: float) -> None:
        """Wait for the first UpdateMetadata, for at most `timeout_s`. A client that gets an empty
        cluster may not refresh for minutes."""
        if self._updated.is_set():
            return
        try:
            async with asyncio.timeout(timeout_s):
                await self._updated.wait()
        except TimeoutError:
            self._updated.set()  # wait once; a disconnected broker answers from its cache

    def update(
        self, request: UpdateMetadataRequest, states: States | None = None
    ) -> list[tuple[str, int]]:
        """Apply an UpdateMetadata, whose `states_in` may be passed; return the partitions that it
        deleted."""
        if states is None:
            states = run_steps(states_in(request))
        self.controller_id = request.controller_id if request.controller_id >= 0 else None
        self.brokers = {broker.id: _live_broker(broker) for broker in request.live_brokers}
        deleted = []
        self.terms = (request.broker_epoch, request.controller_epoch)
        for topic, topic_id, index, state in states:
            if topic_id != ZERO_UUID:
                self._name(topic, topic_id)
            if state.leader == LEADER_DURING_DELETE:
                self._remove(topic, index)
                deleted.append((topic, index))
            else:
                self.topics.setdefault(topic, {})[index] = state
        self._updated.set()
        self.on_update.notify()
        return deleted

    def _name(self, topic: str, topic_id: UUID) -> None:
        old = self.topic_ids.get(topic)
        if old is not None and old != topic_id:
            self.topic_names.pop(old, None)
            self.topics.pop(topic, None)  # the old topic may have had more partitions
        self.topic_ids[topic] = topic_id
        self.topic_names[topic_id] = topic

    def forget(self, topics: Mapping[str, UUID]) -> list[str]:
        """Drop topics, by name and id, that were deleted elsewhere; return those that were present.
        A recreated topic has another id and stays."""
        here = [name for name, topic_id in topics.items() if self.topic_ids.get(name) == topic_id]
        for topic in here:
            for partition in list(self.topics.get(topic, ())):
                self._remove(topic, partition)
        return here

    def _remove(self, topic: str, partition: int) -> None:
        partitions = self.topics.get(topic, {})
        partitions.pop(partition, None)
        if not partitions:
            self.topics.pop(topic, None)
            topic_id = self.topic_ids.pop(topic, None)
            if topic_id is not None:
                self.topic_names.pop(topic_id, None)

    def partition(self, topic: str, partition: int) -> PartitionState | None:
        return self.topics.get(topic, {}).get(partition)

    def endpoint(self, broker_id: int, listener: str) -> Endpoint | None:
        """Return the address of a live broker's listener, or None."""
        broker = self.brokers.get(broker_id)
        return None if broker is None else broker.endpoint(listener)

    def live_endpoints(self, listener: str) -> list[Endpoint]:
        """Return the listeners of all live brokers that have it, by broker id."""
        endpoints = (
            self.brokers[broker_id].endpoint(listener) for broker_id in sorted(self.brokers)
        )
        return [endpoint for endpoint in endpoints if endpoint is not None]


def _live_broker(broker: UpdateMetadataRequest.UpdateMetadataBroker) -> LiveBroker:
    endpoints = {point.listener: (point.host, point.port) for point in broker.endpoints}
    if not endpoints and broker.v0_host:
        endpoints = {"PLAINTEXT": (broker.v0_host, broker.v0_port)}
    return LiveBroker(id=broker.id, rack=broker.rack or None, endpoints=endpoints)


def partition_states_in(
    request: UpdateMetadataRequest,
) -> Iterator[tuple[str, UUID, UpdateMetadataRequest.UpdateMetadataPartitionState]]:
    """Yield all partitions of a request of any version, with their topic ids (zero if unknown)."""
    for state in request.ungrouped_partition_states:
        yield state.topic_name, ZERO_UUID, state
    for topic in request.topic_states:
        for state in topic.partition_states:
            yield topic.topic_name, topic.topic_id, state


def states_in(request: UpdateMetadataRequest) -> Steps[States]:
    """Convert the partitions of a request, in steps: 100,000 partitions take time."""
    states: States = []
    for topic, topic_id, state in partition_states_in(request):
        states.append((topic, topic_id, state.partition_index, _partition(state)))
        if len(states) % PACE == 0:
            yield STEP
    return states


def _partition(state: UpdateMetadataRequest.UpdateMetadataPartitionState) -> PartitionState:
    return PartitionState(
        controller_epoch=state.controller_epoch,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=tuple(state.isr),
        partition_epoch=state.zk_version,
        replicas=tuple(state.replicas),
        offline_replicas=tuple(state.offline_replicas),
    )
