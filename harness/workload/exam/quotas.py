"""Questions about what clients and replicas may take of brokers."""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import Any

from kafka.protocol.admin import (
    AlterClientQuotasRequest,
    AlterPartitionReassignmentsRequest,
    IncrementalAlterConfigsRequest,
)

from urteil.harness.workload.exam.question import Brokers, Question, awaited, check
from urteil.harness.workload.exam.records import batch, written

Told = tuple[int, str]
SET, DELETE = 0, 1
OF_TOPIC, OF_BROKER = 2, 4
LITTLE, PERCENT = 0.001, "request_percentage"
REQUESTS = 400
LARGE, BATCHES = 900_000, 4
"""Replicas ask for a MiB at once: the first batch is under way when its cost is known."""
BYTES_A_SECOND = "100000"
HELD_UP_S, ARRIVES_S = 2.5, 10.0
POLL_S = 0.1


def _requests(brokers: Brokers, name: str) -> Told:
    """A client id that may take next to nothing of a processor is told to wait, until that is
    over."""
    node = brokers.nodes[0]
    _limit(brokers, name, remove=False)
    throttled = any(brokers.throttled_ms(node, name) for _ in range(REQUESTS))
    _limit(brokers, name, remove=True)

    def told() -> str:
        return "throttled" if brokers.throttled_ms(node, name) else "at once"

    return node, f"{'throttled' if throttled else 'at once'}, then {awaited(told, 'at once')}"


def _limit(brokers: Brokers, name: str, *, remove: bool) -> None:
    kinds = AlterClientQuotasRequest.EntryData
    asked = kinds(
        entity=[kinds.EntityData(entity_type="client-id", entity_name=name)],
        ops=[kinds.OpData(key=PERCENT, value=LITTLE, remove=remove)],
    )
    request = AlterClientQuotasRequest[0](entries=[asked], validate_only=False)
    check("AlterClientQuotas", brokers.ask(brokers.controller, request).entries[0].error_code)


def _throttled(side: str, brokers: Brokers, name: str) -> Told:
    """A replica that a topic gets, which is throttled on one side, until it is not any more."""
    leader, follower, *_ = brokers.nodes
    node = leader if side == "leader" else follower
    rate = f"{side}.replication.throttled.rate"
    _alter(brokers, (OF_BROKER, node), rate, SET, BYTES_A_SECOND)  # brokers hear of both late
    try:
        brokers.create(name, [[leader]])
        which = f"{side}.replication.throttled.replicas"  # Kafka does not look at it at a creation
        _alter(brokers, (OF_TOPIC, name), which, SET, "*")
        written(brokers, leader, name, *[batch(b"x" * LARGE)] * BATCHES)
        _add_replica(brokers, name, [leader, follower])
        early = _arrives(brokers, leader, name, follower, HELD_UP_S)
    finally:
        _alter(brokers, (OF_BROKER, node), rate, DELETE, None)
    late = _arrives(brokers, leader, name, follower, ARRIVES_S)
    return node, f"{'at once' if early else 'held up'}, {'then in sync' if late else 'for ever'}"


def _alter(
    brokers: Brokers, whose: tuple[int, int | str], key: str, operation: int, value: str | None
) -> None:
    """A setting of a topic, or of a broker, which is asked itself."""
    kind, name = whose
    node = name if isinstance(name, int) else brokers.controller
    kinds: Any = IncrementalAlterConfigsRequest.AlterConfigsResource
    change = kinds.AlterableConfig(name=key, config_operation=operation, value=value)
    asked = kinds(resource_type=kind, resource_name=str(name), configs=[change])
    request = IncrementalAlterConfigsRequest[0](resources=[asked], validate_only=False)
    check("IncrementalAlterConfigs", brokers.ask(node, request).responses[0].error_code)


def _add_replica(brokers: Brokers, topic: str, replicas: list[int]) -> None:
    kinds = AlterPartitionReassignmentsRequest.ReassignableTopic
    part = kinds.ReassignablePartition(partition_index=0, replicas=replicas)
    request = AlterPartitionReassignmentsRequest[0](
        timeout_ms=5_000, topics=[kinds(name=topic, partitions=[part])]
    )
    told = brokers.ask(brokers.controller, request)
    check("AlterPartitionReassignments", told.error_code)
    check("AlterPartitionReassignments", told.responses[0].partitions[0].error_code)


def _arrives(brokers: Brokers, leader: int, topic: str, follower: int, within_s: float) -> bool:
    """Whether a replica is in sync before so long has passed."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        (part,) = brokers.metadata(leader, topic).partitions
        if follower in part.isr_nodes:
            return True
        threading.Event().wait(POLL_S)
    return False


QUOTAS = (
    Question(
        about="requests of a client id whose request_percentage is next to nothing, and is over "
        "(KIP-124)",
        answer="throttled, then at once",
        ask=_requests,
    ),
    *(
        Question(
            about=f"a replica that is added, with a {side}.replication.throttled.rate, and "
            "without one (KIP-73)",
            answer="held up, then in sync",
            ask=partial(_throttled, side),
        )
        for side in ("leader", "follower")
    ),
)
