"""Questions about quotas of clients and replicas."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from kafka.protocol.admin import (
    AlterClientQuotasRequest,
    AlterPartitionReassignmentsRequest,
    IncrementalAlterConfigsRequest,
)

from urteil.harness.conformance.question import BrokerAnswer, Brokers, Question, await_value, check
from urteil.harness.conformance.records import make_batch, write_batches

SET, DELETE = 0, 1
OF_TOPIC, OF_BROKER = 2, 4
LITTLE, PLENTY, PERCENT = 0.001, 1_000.0, "request_percentage"
USER, CLIENT, ANONYMOUS = "user", "client-id", "ANONYMOUS"
"""Entity types, and the user of unauthenticated connections."""
HELD, FREE = "throttled", "at once"
REQUESTS = 400
LARGE, BATCHES = 900_000, 4
"""Replicas ask for a MiB at once: the first batch is under way when its cost is known."""
BYTES_A_SECOND = "100000"
HELD_UP_S, ARRIVES_S = 2.5, 10.0
POLL_S = 0.1
NO_PROCESSOR_TIME = "requests take no processor time of the simulation's"


def _throttle_client(brokers: Brokers, name: str) -> BrokerAnswer:
    """A client id with a tiny share of processor time is throttled until the quota is removed."""
    node, entity = brokers.nodes[0], {CLIENT: name}
    _set_quota(brokers, entity, LITTLE)
    before = _is_throttled(brokers, node, name)
    _set_quota(brokers, entity, None)
    after = await_value(brokers, lambda: _is_throttled_once(brokers, node, name), FREE)
    return node, f"{before}, then {after}"


def _throttle_user(brokers: Brokers, name: str) -> BrokerAnswer:
    """The quota of a client id of one user, which takes precedence over that of the client id."""
    node, entity = brokers.nodes[0], {USER: ANONYMOUS, CLIENT: name}
    _set_quota(brokers, entity, LITTLE)
    before = _is_throttled(brokers, node, name)
    _set_quota(brokers, {CLIENT: name}, LITTLE)
    _set_quota(brokers, entity, PLENTY)
    after = await_value(brokers, lambda: _is_throttled_once(brokers, node, name), FREE)
    _set_quota(brokers, entity, None)
    again = _is_throttled(brokers, node, name)
    _set_quota(brokers, {CLIENT: name}, None)
    return node, f"{before}, then {after}, then {again}"


def _is_throttled(brokers: Brokers, node: int, name: str) -> str:
    return HELD if any(brokers.throttled_ms(node, name) for _ in range(REQUESTS)) else FREE


def _is_throttled_once(brokers: Brokers, node: int, name: str) -> str:
    return HELD if brokers.throttled_ms(node, name) else FREE


def _set_quota(brokers: Brokers, entity: Mapping[str, str], percent: float | None) -> None:
    """Set the quota; None removes it."""
    kinds = AlterClientQuotasRequest.EntryData
    entry_request = kinds(
        entity=[
            kinds.EntityData(entity_type=entity_type, entity_name=name)
            for entity_type, name in entity.items()
        ],
        ops=[kinds.OpData(key=PERCENT, value=percent or 0.0, remove=percent is None)],
    )
    request = AlterClientQuotasRequest[0](entries=[entry_request], validate_only=False)
    check("AlterClientQuotas", brokers.send(brokers.controller, request).entries[0].error_code)


def _throttle_replica(side: str, brokers: Brokers, name: str) -> BrokerAnswer:
    """An added replica that is throttled on one side, until the throttle is removed."""
    leader, follower, *_ = brokers.nodes
    node = leader if side == "leader" else follower
    rate = f"{side}.replication.throttled.rate"
    _alter_config(
        brokers, (OF_BROKER, node), rate, SET, BYTES_A_SECOND
    )  # brokers hear of both late
    try:
        brokers.create(name, [[leader]])
        which = f"{side}.replication.throttled.replicas"  # Kafka does not look at it at a creation
        _alter_config(brokers, (OF_TOPIC, name), which, SET, "*")
        write_batches(brokers, leader, name, *[make_batch(b"x" * LARGE)] * BATCHES)
        _add_replica(brokers, name, [leader, follower])
        early = _gets_in_sync(brokers, leader, name, follower, HELD_UP_S)
    finally:
        _alter_config(brokers, (OF_BROKER, node), rate, DELETE, None)
    late = _gets_in_sync(brokers, leader, name, follower, ARRIVES_S)
    return node, f"{'at once' if early else 'held up'}, {'then in sync' if late else 'for ever'}"


def _alter_config(
    brokers: Brokers, whose: tuple[int, int | str], key: str, operation: int, value: str | None
) -> None:
    """Change a setting of a topic, or of a broker at that broker."""
    kind, name = whose
    node = name if isinstance(name, int) else brokers.controller
    kinds: Any = IncrementalAlterConfigsRequest.AlterConfigsResource
    change = kinds.AlterableConfig(name=key, config_operation=operation, value=value)
    entry_request = kinds(resource_type=kind, resource_name=str(name), configs=[change])
    request = IncrementalAlterConfigsRequest[0](resources=[entry_request], validate_only=False)
    check("IncrementalAlterConfigs", brokers.send(node, request).responses[0].error_code)


def _add_replica(brokers: Brokers, topic: str, replicas: list[int]) -> None:
    kinds = AlterPartitionReassignmentsRequest.ReassignableTopic
    part = kinds.ReassignablePartition(partition_index=0, replicas=replicas)
    request = AlterPartitionReassignmentsRequest[0](
        timeout_ms=5_000, topics=[kinds(name=topic, partitions=[part])]
    )
    response = brokers.send(brokers.controller, request)
    check("AlterPartitionReassignments", response.error_code)
    check("AlterPartitionReassignments", response.responses[0].partitions[0].error_code)


def _gets_in_sync(
    brokers: Brokers, leader: int, topic: str, follower: int, within_s: float
) -> bool:
    """Whether a replica is in sync within this time."""

    def is_in_sync() -> bool:
        (partition,) = brokers.metadata(leader, topic).partitions
        return follower in partition.isr_nodes

    return brokers.environment.until(is_in_sync, deadline_s=within_s, poll_s=POLL_S)


QUOTAS = (
    Question(
        about="requests of a client id with a tiny request_percentage, and after its removal "
        "(KIP-124)",
        answer="throttled, then at once",
        ask=_throttle_client,
        unsimulated=NO_PROCESSOR_TIME,
    ),
    Question(
        about="the same for a user's client id, beside the quota of the client id (KIP-55)",
        answer="throttled, then at once, then throttled",
        ask=_throttle_user,
        unsimulated=NO_PROCESSOR_TIME,
    ),
    *(
        Question(
            about=f"a replica that is added with a {side}.replication.throttled.rate, and "
            "without one (KIP-73)",
            answer="held up, then in sync",
            ask=partial(_throttle_replica, side),
        )
        for side in ("leader", "follower")
    ),
)
