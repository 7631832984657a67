"""A question about a group whose coordinator moves to another live broker."""

from __future__ import annotations

from urteil.harness.conformance.group_member import join_alone, member
from urteil.harness.conformance.groups import describe_group, partition_of
from urteil.harness.conformance.question import (
    BrokerAnswer,
    Brokers,
    PreconditionFailed,
    Question,
    await_value,
    check,
    name_of,
)
from urteil.harness.conformance.reassignments import elect, reassign

OFFSETS = "__consumer_offsets"


def _move_coordinator(brokers: Brokers, name: str) -> BrokerAnswer:
    """The new coordinator knows a static member, its assignment and the group's offset. The member
    can return without a rebalance (KIP-345)."""
    brokers.create(name, [[brokers.nodes[0]]])
    joined = join_alone(brokers, name, instance="same")
    check("OffsetCommit", joined.commit(name, {0: 7})[0])
    number, (first, *others) = partition_of(brokers, name, OFFSETS)
    if not others:
        raise PreconditionFailed(f"{OFFSETS} has one replica")
    check("AlterPartitionReassignments", reassign(brokers, OFFSETS, [*others, first], number))
    check("ElectLeaders", elect(brokers, OFFSETS, number))
    if await_value(brokers, lambda: str(brokers.coordinator(name)), str(others[0])) != str(
        others[0]
    ):
        raise PreconditionFailed(f"broker {others[0]} does not coordinate {name}")
    joined.node = others[0]
    result = await_value(brokers, lambda: name_of(joined.heartbeat()), "No")
    known = f"{result}, {describe_group(brokers, name)}, {joined.positions()}"
    again = member(brokers, name, instance="same")
    again.join_or_fail()
    return joined.node, f"{known}, {again.generation - joined.generation} later"


TAKEOVERS = (
    Question(
        about="the state of a group with a static member at its next coordinator, "
        "and the member's return",
        answer="No, Stable range ['all'], 0:7, 0 later",
        ask=_move_coordinator,
    ),
)
