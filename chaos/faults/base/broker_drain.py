"""Moves all replicas off a broker, and restores them."""

from __future__ import annotations

from urteil.chaos.admin_controls import Replicas
from urteil.chaos.controls import Controls

DEADLINE_S = 90.0

FormerReplicas = dict[str, Replicas]
"""Topic to the former replicas of its partitions."""


def drain(controls: Controls, node: str) -> FormerReplicas:
    """Reassign all replicas of `node` to other brokers. A partition with a replica on every broker
    loses one replica. Returns the former replicas of the reassigned topics."""
    before: FormerReplicas = {}
    for topic in controls.topics():
        held = {
            partition: nodes
            for partition, nodes in controls.admin.replicas(topic).items()
            if node in nodes
        }
        if held:
            before[topic] = held
    reassign(
        controls, {topic: _replace_broker(controls, node, held) for topic, held in before.items()}
    )
    return before


def reassign(controls: Controls, former_replicas: FormerReplicas) -> None:
    """Reassign the partitions and wait until their replicas are in sync."""
    for topic, replicas in former_replicas.items():
        controls.admin.reassign(topic, replicas)
    for topic, replicas in former_replicas.items():
        controls.admin.await_reassigned(topic, replicas, deadline_s=DEADLINE_S)


def count_in_sync(controls: Controls, node: str) -> int:
    """The number of partitions with an in-sync replica on a broker."""
    return sum(
        node in view.isr for topic in controls.topics() for view in controls.partitions(topic)
    )


def _replace_broker(controls: Controls, node: str, replicas: Replicas) -> Replicas:
    return {
        partition: tuple(_replace_in(controls, node, partition, tuple(nodes)))
        for partition, nodes in replicas.items()
    }


def _replace_in(controls: Controls, node: str, partition: int, nodes: tuple[str, ...]) -> list[str]:
    others = [broker for broker in controls.brokers if broker not in nodes]
    if not others:
        return [replica for replica in nodes if replica != node]
    return [others[partition % len(others)] if replica == node else replica for replica in nodes]
