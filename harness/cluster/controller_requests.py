"""Requests of a controller to brokers, sent by the lab. Implements the protocol of
`chaos.controls`.

UpdateMetadata 5 and StopReplica 1 are the first versions with a broker epoch (KIP-380).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from typing import Any

from kafka.errors import for_code

from urteil.chaos.observations import LabFailure, PartitionView
from urteil.harness.cluster.cluster_state import ClusterState
from urteil.harness.protocol.connection import Connection
from urteil.harness.protocol.framing import encode_request, encode_string

UPDATE_METADATA, STOP_REPLICA = (6, 5), (5, 1)
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
ANSWER_S = 5.0
NOBODY = -1


class ControllerRequests:
    """Sends as the controller that ZooKeeper names, past all proxies. `address` is a broker's
    direct one."""

    def __init__(self, state: ClusterState, address: Callable[[str], tuple[str, int]]) -> None:
        self._state = state
        self._address = address

    def update_metadata_request(self, node: str) -> bytes:
        epoch = self._state.controller_epoch()
        by_topic = [(topic, self._state.partitions(topic)) for topic in self._state.topics()]
        topics = [
            encode_string(topic) + _array(_partition(view, epoch) for view in views)
            for topic, views in by_topic
        ]
        brokers = [_broker(one) for one in self._state.registrations().items()]
        return encode_request(
            UPDATE_METADATA, 1, self._head(node, epoch) + _array(topics) + _array(brokers)
        )

    def stop_replica_request(self, node: str) -> bytes:
        topics = []
        for topic in self._state.topics():
            views = self._state.partitions(topic)
            shared = [v for v in views if node in v.replicas and len(v.replicas) > 1]
            if shared:
                topics.append(encode_string(topic) + _ints([view.partition for view in shared]))
        head = self._head(node, self._state.controller_epoch())
        return encode_request(STOP_REPLICA, 1, head + struct.pack(">?", False) + _array(topics))

    def send(self, node: str, command: bytes) -> str:
        host, port = self._address(node)
        try:
            with closing(Connection(f"{host}:{port}", ANSWER_S)) as wire:
                (error,) = struct.unpack_from(">h", wire.call(command), 4)
        except (OSError, struct.error) as failure:
            raise LabFailure(f"{node} does not answer a controller: {failure}") from failure
        return str(for_code(error).__name__) if error else ""

    def _head(self, node: str, epoch: int) -> bytes:
        """Controller id, controller epoch and broker epoch."""
        controller, life = self._state.controller(), self._state.registered_brokers().get(node)
        if controller is None or life is None:
            raise LabFailure(f"there is no controller, or {node} is not registered")
        return struct.pack(">iiq", _id(controller), epoch, life)


def _partition(view: PartitionView, epoch: int) -> bytes:
    """The partition's state. Brokers ignore its znode version, which is left out."""
    leader = NOBODY if view.leader is None else _id(view.leader)
    head = struct.pack(">iiii", view.partition, epoch, leader, view.leader_epoch)
    isr, replicas = (_ints([_id(one) for one in nodes]) for nodes in (view.isr, view.replicas))
    return head + isr + struct.pack(">i", -1) + replicas + _ints([])


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


def _array(parts: Iterable[bytes]) -> bytes:
    elements = list(parts)
    return struct.pack(">i", len(elements)) + b"".join(elements)


def _ints(numbers: Sequence[int]) -> bytes:
    return struct.pack(f">i{len(numbers)}i", len(numbers), *numbers)


def _id(node: str) -> int:
    return int(node[1:])
