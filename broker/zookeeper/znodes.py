"""Paths and JSON of the nodes, byte for byte as Apache Kafka 3.9 in ZooKeeper mode writes them."""

from __future__ import annotations

import base64
import json
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

BROKER_IDS = "/brokers/ids"
TOPICS = "/brokers/topics"
CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
CLUSTER_ID = "/cluster/id"
DELETE_TOPICS = "/admin/delete_topics"
CONFIG_CHANGES = "/config/changes"
LOG_DIR_EVENTS = "/log_dir_event_notification"
PRODUCER_ID_BLOCK = "/latest_producer_id_block"
FEATURE = "/feature"
REASSIGN_PARTITIONS = "/admin/reassign_partitions"
PREFERRED_REPLICA_ELECTION = "/admin/preferred_replica_election"

PERSISTENT = (
    "/consumers",
    BROKER_IDS,
    TOPICS,
    CONFIG_CHANGES,
    DELETE_TOPICS,
    "/brokers/seqid",
    "/isr_change_notification",
    "/latest_producer_id_block",
    LOG_DIR_EVENTS,
    "/config/topics",
    "/config/clients",
    "/config/users",
    "/config/brokers",
    "/config/ips",
)
"""Created by every broker at its start (`ZkData.PersistentZkPaths`)."""


def broker_path(broker_id: int) -> str:
    return f"{BROKER_IDS}/{broker_id}"


def topic_path(topic: str) -> str:
    return f"{TOPICS}/{topic}"


def partitions_path(topic: str) -> str:
    return f"{TOPICS}/{topic}/partitions"


def partition_path(topic: str, partition: int) -> str:
    return f"{TOPICS}/{topic}/partitions/{partition}"


def state_path(topic: str, partition: int) -> str:
    return f"{TOPICS}/{topic}/partitions/{partition}/state"


def config_path(kind: str, entity: str) -> str:
    """`kind` is `topics`, `brokers`, `clients`, `users` or `ips`."""
    return f"/config/{kind}/{entity}"


def topic_config_path(topic: str) -> str:
    return config_path("topics", topic)


def delete_topic_path(topic: str) -> str:
    return f"{DELETE_TOPICS}/{topic}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerEndpoint:
    """The address of a broker's listener; `protocol` is the name of its security protocol."""

    listener: str
    host: str
    port: int
    protocol: str = "PLAINTEXT"

    @property
    def uri(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.listener}://{host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerInfo:
    """A registered broker. `epoch` is the czxid of its node (-1: not registered)."""

    id: int
    endpoints: tuple[BrokerEndpoint, ...]
    rack: str | None = None
    epoch: int = -1

    def endpoint(self, listener: str) -> BrokerEndpoint | None:
        return next(
            (endpoint for endpoint in self.endpoints if endpoint.listener == listener), None
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicAssignment:
    """Replicas of every partition, in order of preference."""

    partitions: Mapping[int, tuple[int, ...]]
    topic_id: UUID | None = None
    adding: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    removing: Mapping[int, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionState:
    """Leader (-1: none) and ISR. `partition_epoch` is the version of the state node; `zxid` is the
    transaction that wrote it, if it was read."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int
    recovery_state: int = 0  # 1: RECOVERING after an unclean election (KIP-704)
    partition_epoch: int = 0
    zxid: int = field(default=0, compare=False)


def encode_broker(info: BrokerInfo, now_ms: int) -> bytes:
    """Version 5; host and port repeat the PLAINTEXT listener for old clients."""
    plain = next(
        (endpoint for endpoint in info.endpoints if endpoint.protocol == "PLAINTEXT"), None
    )
    value = {
        "features": {},
        "listener_security_protocol_map": {
            endpoint.listener: endpoint.protocol for endpoint in info.endpoints
        },
        "endpoints": [endpoint.uri for endpoint in info.endpoints],
        "rack": info.rack,
        "jmx_port": -1,
        "port": plain.port if plain else -1,
        "host": plain.host if plain else None,
        "version": 5,
        "timestamp": str(now_ms),
    }
    if info.rack is None:
        del value["rack"]
    return _dump(value)


def decode_broker(broker_id: int, data: bytes, czxid: int) -> BrokerInfo:
    value = json.loads(data)
    protocols = value.get("listener_security_protocol_map") or {}
    return BrokerInfo(
        id=broker_id,
        endpoints=tuple(_endpoint(uri, protocols) for uri in value["endpoints"]),
        rack=value.get("rack"),
        epoch=czxid,
    )


def _endpoint(uri: str, protocols: Mapping[str, str]) -> BrokerEndpoint:
    listener, _, address = uri.partition("://")
    host, _, port = address.rpartition(":")
    return BrokerEndpoint(
        listener=listener,
        host=host.strip("[]"),
        port=int(port),
        protocol=protocols.get(listener, listener),
    )


def encode_topic(topic: TopicAssignment) -> bytes:
    value: dict[str, Any] = {"partitions": _lists(topic.partitions)}
    if topic.topic_id is not None:
        value["topic_id"] = encode_uuid(topic.topic_id)
    value |= {
        "adding_replicas": _lists(topic.adding),
        "removing_replicas": _lists(topic.removing),
        "version": 3,
    }
    return _dump(value)


def decode_topic(data: bytes) -> TopicAssignment:
    value = json.loads(data)
    raw_id = value.get("topic_id")
    return TopicAssignment(
        partitions=_tuples(value["partitions"]),
        topic_id=decode_uuid(raw_id) if raw_id else None,
        adding=_tuples(value.get("adding_replicas") or {}),
        removing=_tuples(value.get("removing_replicas") or {}),
    )


def encode_state(state: PartitionState) -> bytes:
    value = {
        "controller_epoch": state.controller_epoch,
        "leader": state.leader,
        "version": 1,
        "leader_epoch": state.leader_epoch,
        "isr": list(state.isr),
    }
    if state.recovery_state:
        value["leader_recovery_state"] = state.recovery_state
    return _dump(value)


def decode_state(data: bytes, version: int, zxid: int = 0) -> PartitionState:
    value = json.loads(data)
    return PartitionState(
        leader=operator.index(value["leader"]),
        leader_epoch=operator.index(value["leader_epoch"]),
        isr=tuple(map(operator.index, value["isr"])),
        controller_epoch=operator.index(value["controller_epoch"]),
        recovery_state=value.get("leader_recovery_state", 0),
        partition_epoch=version,
        zxid=zxid,
    )


def encode_reassignments(reassignments: Mapping[tuple[str, int], Sequence[int]]) -> bytes:
    """Encode `/admin/reassign_partitions`, with which tools before KIP-455 request new replicas."""
    partitions = [
        {"topic": topic, "partition": partition, "replicas": list(replicas)}
        for (topic, partition), replicas in reassignments.items()
    ]
    return _dump({"version": 1, "partitions": partitions})


def decode_reassignments(data: bytes) -> dict[tuple[str, int], tuple[int, ...]]:
    """Raises ValueError, KeyError or TypeError for malformed data, which people may have written by
    hand."""
    return {
        (str(entry["topic"]), int(entry["partition"])): tuple(int(id) for id in entry["replicas"])
        for entry in json.loads(data)["partitions"]
    }


def decode_elections(data: bytes) -> list[tuple[str, int]]:
    """`/admin/preferred_replica_election`; raises as `decode_reassignments`."""
    return [
        (str(entry["topic"]), int(entry["partition"])) for entry in json.loads(data)["partitions"]
    ]


def encode_controller(broker_id: int, now_ms: int) -> bytes:
    return _dump(
        {"version": 2, "brokerid": broker_id, "timestamp": str(now_ms), "kraftControllerEpoch": -1}
    )


def decode_controller(data: bytes) -> int:
    return int(json.loads(data)["brokerid"])


def encode_config(config: Mapping[str, str]) -> bytes:
    return _dump({"version": 1, "config": dict(config)})


def decode_config(data: bytes) -> dict[str, str]:
    """Raises ValueError for malformed data, which people may have written by hand."""
    value = json.loads(data) if data else {}
    config = (value.get("config") or {}) if isinstance(value, dict) else None
    if not isinstance(config, dict) or not all(isinstance(value, str) for value in config.values()):
        raise ValueError(f"no settings: {value}")
    return config


def encode_config_change(entity_path: str) -> bytes:
    """`entity_path` is `topics/orders`."""
    return _dump({"version": 2, "entity_path": entity_path})


def decode_config_change(data: bytes) -> tuple[str, str]:
    """Decode entity type and name; version 1 has them in separate fields."""
    value = json.loads(data)
    if value.get("version") == 1:
        return value["entity_type"], value["entity_name"]
    kind, _, name = value["entity_path"].partition("/")
    if not name:
        raise ValueError(f"entity_path {kind} names no entity")
    return kind, name


def encode_cluster_id(cluster_id: str) -> bytes:
    return _dump({"version": "1", "id": cluster_id})


def decode_cluster_id(data: bytes) -> str:
    return str(json.loads(data)["id"])


def encode_log_dir_event(broker_id: int) -> bytes:
    """Encode the failure of a log directory: event 1 (`LogDirEventNotificationSequenceZNode`)."""
    return _dump({"version": 1, "broker": broker_id, "event": 1})


def encode_producer_id_block(broker_id: int, start: int, end: int) -> bytes:
    return _dump(
        {"version": 1, "broker": broker_id, "block_start": str(start), "block_end": str(end)}
    )


def decode_producer_id_block(data: bytes) -> tuple[int, int]:
    """First and last id of the newest block."""
    value = json.loads(data)
    return int(value["block_start"]), int(value["block_end"])


def encode_feature() -> bytes:
    return _dump({"features": {}, "version": 2, "status": 1})


def encode_uuid(value: UUID) -> str:
    """Kafka's `Uuid.toString`: URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")


def decode_uuid(text: str) -> UUID:
    return UUID(bytes=base64.urlsafe_b64decode(text + "=="))


def _lists(partitions: Mapping[int, Sequence[int]]) -> dict[str, list[int]]:
    return {str(partition): list(replicas) for partition, replicas in partitions.items()}


def _tuples(raw: Mapping[str, Sequence[int]]) -> dict[int, tuple[int, ...]]:
    return {
        int(partition): tuple(replicas)
        for partition, replicas in sorted(raw.items(), key=lambda item: int(item[0]))
    }


def _dump(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
