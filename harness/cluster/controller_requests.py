"""Requests of a controller to brokers, sent by the lab. Implements the protocol of
`chaos.controls`.

UpdateMetadata 5 and StopReplica 1 are the first versions with a broker epoch (KIP-380). Older
brokers receive UpdateMetadata 3 and StopReplica 0, which they cannot distinguish from current
requests.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from typing import Any

from kafka.errors import for_code

from urteil.chaos.capabilities import BROKER_EPOCHS
from urteil.chaos.observations import LabFailure, PartitionView
from urteil.harness.cluster.cluster_state import ClusterState
from urteil.harness.protocol.connection import Connection
from urteil.harness.protocol.framing import encode_request, encode_string

UPDATE_METADATA, STOP_REPLICA = (6, 5), (5, 1)
OLD_UPDATE_METADATA, OLD_STOP_REPLICA = (6, 3), (5, 0)
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
ANSWER_S = 5.0
NOBODY = -1


class ControllerRequests:
    """Sends requests as the controller that ZooKeeper names, past all proxies. `address` is a
    broker's direct one."""

    def __init__(self, state: ClusterState, address: Callable[[str], tuple[str, int]]) -> None:
        self._state = state
        self._address = address

    def update_metadata_request(self, node: str) -> bytes:
        epoch = self._state.controller_epoch()
        views = [view for topic in self._state.topics() for view in self._state.partitions(topic)]
        brokers = _array(map(_broker, self._state.registrations().items()))
        if self._has_epochs:
            topics = [
                encode_string(topic) + _array(_partition(view, epoch) for view in own)
                for topic, own in _by_topic(views).items()
            ]
            return encode_request(
                UPDATE_METADATA, 1, self._head(node, epoch) + _array(topics) + brokers
            )
        partitions = [encode_string(view.topic) + _old_partition(view, epoch) for view in views]
        return encode_request(
            OLD_UPDATE_METADATA, 1, self._head(node, epoch) + _array(partitions) + brokers
        )

    def stop_replica_request(self, node: str) -> bytes:
        views = [
            view
            for topic in self._state.topics()
            for view in self._state.partitions(topic)
            if node in view.replicas and len(view.replicas) > 1
        ]
        head = self._head(node, self._state.controller_epoch()) + struct.pack(">?", False)
        if self._has_epochs:
            topics = [
                encode_string(topic) + _ints([view.partition for view in own])
                for topic, own in _by_topic(views).items()
            ]
            return encode_request(STOP_REPLICA, 1, head + _array(topics))
        partitions = [encode_string(v.topic) + struct.pack(">i", v.partition) for v in views]
        return encode_request(OLD_STOP_REPLICA, 1, head + _array(partitions))

    def send(self, node: str, command: bytes) -> str:
        host, port = self._address(node)
        try:
            with closing(Connection(f"{host}:{port}", ANSWER_S)) as wire:
                (error,) = struct.unpack_from(">h", wire.call(command), 4)
        except (OSError, struct.error) as failure:
            raise LabFailure(f"{node} does not answer a controller: {failure}") from failure
        return str(for_code(error).__name__) if error else ""

    @property
    def _has_epochs(self) -> bool:
        return BROKER_EPOCHS.name not in self._state.lacks

    def _head(self, node: str, epoch: int) -> bytes:
        """Controller id and controller epoch, and the broker epoch in versions that have one."""
        controller, life = self._state.controller(), self._state.registered_brokers().get(node)
        if controller is None or life is None:
            raise LabFailure(f"there is no controller, or {node} is not registered")
        head = struct.pack(">ii", _id(controller), epoch)
        return head + struct.pack(">q", life) if self._has_epochs else head


def _by_topic(views: Iterable[PartitionView]) -> dict[str, list[PartitionView]]:
    topics: dict[str, list[PartitionView]] = {}
    for view in views:
        topics.setdefault(view.topic, []).append(view)
    return topics


def _partition(view: PartitionView, epoch: int) -> bytes:
    """The partition's state in version 5."""
    return _old_partition(view, epoch) + _ints([])


def _old_partition(view: PartitionView, epoch: int) -> bytes:
    """The same in version 3, without offline replicas. Brokers ignore the znode version, which is
    left out."""
    leader = NOBODY if view.leader is None else _id(view.leader)
    head = struct.pack(">iiii", view.partition, epoch, leader, view.leader_epoch)
    isr, replicas = (_ints([_id(node) for node in nodes]) for nodes in (view.isr, view.replicas))
    return head + isr + struct.pack(">i", -1) + replicas


def _broker(broker: tuple[str, dict[str, Any]]) -> bytes:
    node, registration = broker
    protocols = registration["listener_security_protocol_map"]
    endpoints = []
    for endpoint in registration["endpoints"]:
        listener, _, address = endpoint.partition("://")
        host, _, port = address.rpartition(":")
        protocol = PROTOCOLS.index(protocols[listener])
        endpoints.append(
            struct.pack(">i", int(port)) + encode_string(host.strip("[]")) + encode_string(listener)
            + struct.pack(">h", protocol)
        )  # fmt: skip
    rack = registration.get("rack")
    return (
        struct.pack(">i", _id(node))
        + _array(endpoints)
        + (encode_string(rack) if rack else b"\xff\xff")
    )


def _array(encoded: Iterable[bytes]) -> bytes:
    elements = list(encoded)
    return struct.pack(">i", len(elements)) + b"".join(elements)


def _ints(numbers: Sequence[int]) -> bytes:
    return struct.pack(f">i{len(numbers)}i", len(numbers), *numbers)


def _id(node: str) -> int:
    return int(node[1:])
