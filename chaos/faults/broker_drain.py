"""Taking all replicas off a broker, and giving them back."""

from __future__ import annotations

from urteil.chaos.admin_controls import Replicas
from urteil.chaos.controls import Controls

DEADLINE_S = 90.0

Before = dict[str, Replicas]
"""Topic to the replicas that its partitions had."""


def drain(controls: Controls, node: str) -> Before:
    """Have other brokers take over everything that `node` holds; a partition that all brokers have
    loses that replica. What was before, of the topics that were touched."""
    before: Before = {}
    for topic in controls.topics():
        held = {
            one: nodes for one, nodes in controls.admin.replicas(topic).items() if node in nodes
        }
        if held:
            before[topic] = held
    move(controls, {topic: _without(controls, node, held) for topic, held in before.items()})
    return before


def move(controls: Controls, wanted: Before) -> None:
    """Reassign them all and wait until they are there and in sync."""
    for topic, replicas in wanted.items():
        controls.admin.reassign(topic, replicas)
    for topic, replicas in wanted.items():
        controls.admin.await_reassigned(topic, replicas, deadline_s=DEADLINE_S)


def held(controls: Controls, node: str) -> int:
    """How many partitions have an in-sync replica on a broker."""
    return sum(
        node in view.isr for topic in controls.topics() for view in controls.partitions(topic)
    )


def _without(controls: Controls, node: str, replicas: Replicas) -> Replicas:
    return {
        one: tuple(_instead(controls, node, one, tuple(nodes))) for one, nodes in replicas.items()
    }


def _instead(controls: Controls, node: str, partition: int, nodes: tuple[str, ...]) -> list[str]:
    others = [one for one in controls.brokers if one not in nodes]
    if not others:
        return [one for one in nodes if one != node]
    return [others[partition % len(others)] if one == node else one for one in nodes]
