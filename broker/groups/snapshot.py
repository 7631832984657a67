"""Conversion of a group to its record in the offsets topic, and back."""

from __future__ import annotations

from collections.abc import Mapping

from urteil.broker.groups.group import Group
from urteil.broker.groups.group_state import GroupState
from urteil.broker.groups.member import Member
from urteil.broker.groups.records import GroupMetadataValue


def restore(group: Group, value: GroupMetadataValue, now_ms: float) -> None:
    """Fill a new group from its record; the session timeouts of its members restart."""
    group.generation = value.generation
    group.protocol_type = value.protocol_type or None
    group.protocol = value.protocol
    group.leader = value.leader
    if not value.members and value.current_state_timestamp >= 0:
        group.empty_since_ms = value.current_state_timestamp
    for stored in value.members:
        member = Member(
            member_id=stored.member_id,
            instance_id=stored.group_instance_id,
            client_id=stored.client_id,
            client_host=stored.client_host,
            session_timeout_ms=stored.session_timeout,
            rebalance_timeout_ms=stored.rebalance_timeout,
            protocols=((value.protocol or "", bytes(stored.subscription)),),
            deadline_ms=now_ms + stored.session_timeout,
            is_new=False,
            assignment=bytes(stored.assignment),
        )
        group.members[member.member_id] = member
        if member.instance_id is not None:
            group.static_members[member.instance_id] = member.member_id
    group.state = GroupState.STABLE if group.members else GroupState.EMPTY


def snapshot(group: Group, assignments: Mapping[str, bytes], now_ms: int) -> GroupMetadataValue:
    """The record of a group with these assignments; `now_ms` is wall time."""
    return GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation,
        protocol=group.protocol,
        leader=group.leader,
        current_state_timestamp=now_ms,
        members=[
            GroupMetadataValue.MemberMetadata(
                member_id=m.member_id,
                group_instance_id=m.instance_id,
                client_id=m.client_id,
                client_host=m.client_host,
                rebalance_timeout=m.rebalance_timeout_ms,
                session_timeout=m.session_timeout_ms,
                subscription=m.metadata(group.protocol),
                assignment=assignments.get(m.member_id, b""),
            )
            for m in group.members.values()
        ],
    )
