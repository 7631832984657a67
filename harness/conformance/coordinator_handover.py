"""A question about a group whose coordinator gives its office to another one that lives."""

from __future__ import annotations

from urteil.harness.conformance.group_member import alone, member
from urteil.harness.conformance.groups import described, partition_of
from urteil.harness.conformance.question import (
    Brokers,
    PreconditionFailed,
    Question,
    awaited,
    check,
    name_of,
)
from urteil.harness.conformance.reassignments import elect, reassign

Told = tuple[int, str]
OFFSETS = "__consumer_offsets"


def _moved(brokers: Brokers, name: str) -> Told:
    """A static member, what it was given, and its group's position are known to who coordinates
    next; it may come back as ever, and disturbs nobody (KIP-345)."""
    brokers.create(name, [[brokers.nodes[0]]])
    one = alone(brokers, name, instance="same")
    check("OffsetCommit", one.commit(name, {0: 7})[0])
    number, (first, *others) = partition_of(brokers, name, OFFSETS)
    if not others:
        raise PreconditionFailed(f"{OFFSETS} has one replica")
    check("AlterPartitionReassignments", reassign(brokers, OFFSETS, [*others, first], number))
    check("ElectLeaders", elect(brokers, OFFSETS, number))
    if awaited(lambda: str(brokers.coordinator(name)), str(others[0])) != str(others[0]):
        raise PreconditionFailed(f"broker {others[0]} does not coordinate {name}")
    one.node = others[0]
    told = awaited(lambda: name_of(one.heartbeat()), "No")
    known = f"{told}, {described(brokers, name)}, {one.positions()}"
    again = member(brokers, name, instance="same")
    again.joined()
    return one.node, f"{known}, {again.generation - one.generation} later"


TAKEOVERS = (
    Question(
        about="what a group's next coordinator knows of a static member, and of its return",
        answer="No, Stable range ['all'], 0:7, 0 later",
        ask=_moved,
    ),
)
