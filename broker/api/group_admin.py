"""ListGroups, DescribeGroups, DeleteGroups and OffsetDelete."""

from __future__ import annotations

from typing import TYPE_CHECKING

from urteil.broker.api.authorization import allowed_names, may, may_cluster, operations
from urteil.broker.api.registry import RequestContext, handler
from urteil.broker.base.offload import yield_items
from urteil.broker.groups.group import Group
from urteil.broker.groups.group_state import GroupState
from urteil.broker.groups.member import Member
from urteil.broker.security.acls.acl_model import Operation, ResourceType
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    ListGroupsRequest,
    ListGroupsResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
)

if TYPE_CHECKING:
    from urteil.broker.api.broker_parts import BrokerParts

CLASSIC = "classic"
UNASKED = -(1 << 31)


@handler(ApiKey.LIST_GROUPS, 0, 5)
async def list_groups(
    broker: BrokerParts, context: RequestContext, request: ListGroupsRequest
) -> ListGroupsResponse:
    """The groups of this coordinator that pass the case-insensitive filters."""
    error, groups = broker.group_maintenance.list_groups()
    states = {name.lower() for name in request.states_filter}
    kinds = {name.lower() for name in request.types_filter}
    everything = may_cluster(broker, context, Operation.DESCRIBE, quiet=True)
    return ListGroupsResponse(
        error_code=error,
        groups=[
            ListGroupsResponse.ListedGroup(
                group_id=group.group_id,
                protocol_type=group.protocol_type or "",
                group_state=group.state.value,
                group_type=CLASSIC,
            )
            for group in groups
            if (not states or group.state.value.lower() in states)
            and (not kinds or CLASSIC in kinds)
            and (everything or _may_describe(broker, context, group.group_id, quiet=True))
        ],
    )


def _may_describe(
    broker: BrokerParts, context: RequestContext, group_id: str, *, quiet: bool = False
) -> bool:
    return may(broker, context, Operation.DESCRIBE, ResourceType.GROUP, group_id, quiet=quiet)


@handler(ApiKey.DESCRIBE_GROUPS, 0, 5, groups="groups")
async def describe_groups(
    broker: BrokerParts, context: RequestContext, request: DescribeGroupsRequest
) -> DescribeGroupsResponse:
    """Describe groups; unauthorized ones come first in the response."""
    denied, described = [], []
    for group_id in request.groups:
        if not _may_describe(broker, context, group_id):
            denied.append(
                DescribeGroupsResponse.DescribedGroup(
                    error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED, group_id=group_id
                )
            )
            continue
        allowed = UNASKED
        if request.include_authorized_operations:
            allowed = operations(broker, context, ResourceType.GROUP, group_id)
        described.append(_describe_group(broker, group_id, allowed))
    return DescribeGroupsResponse(groups=[*denied, *described])


def _describe_group(
    broker: BrokerParts, group_id: str, allowed: int
) -> DescribeGroupsResponse.DescribedGroup:
    error, group = broker.group_maintenance.describe(group_id)
    if group is None:
        dead = error is ErrorCode.NONE
        return DescribeGroupsResponse.DescribedGroup(
            error_code=error,
            group_id=group_id,
            group_state=GroupState.DEAD.value if dead else "",
            authorized_operations=allowed if dead else UNASKED,
        )
    is_stable = group.state is GroupState.STABLE
    return DescribeGroupsResponse.DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol or "") if is_stable else "",
        members=[_member(group, member, is_stable) for member in group.members.values()],
        authorized_operations=allowed,
    )


def _member(
    group: Group, member: Member, is_stable: bool
) -> DescribeGroupsResponse.DescribedGroupMember:
    """A member; metadata and assignment only if the group is stable."""
    return DescribeGroupsResponse.DescribedGroupMember(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=member.metadata(group.protocol) if is_stable else b"",
        member_assignment=member.assignment if is_stable else b"",
    )


@handler(ApiKey.DELETE_GROUPS, 0, 2, groups_names="results")
async def delete_groups(
    broker: BrokerParts, context: RequestContext, request: DeleteGroupsRequest
) -> DeleteGroupsResponse:
    results = []
    names = list(dict.fromkeys(request.groups_names))
    allowed = allowed_names(broker, context, Operation.DELETE, ResourceType.GROUP, names)
    for group_id in names:
        error = ErrorCode.GROUP_AUTHORIZATION_FAILED
        if group_id in allowed:
            error = await broker.group_maintenance.delete(group_id)
        results.append(
            DeleteGroupsResponse.DeletableGroupResult(group_id=group_id, error_code=error)
        )
    return DeleteGroupsResponse(results=results)


@handler(ApiKey.OFFSET_DELETE, 0, 0)
async def offset_delete(
    broker: BrokerParts, context: RequestContext, request: OffsetDeleteRequest
) -> OffsetDeleteResponse:
    """An error for the whole group, or one for each partition."""
    if not may(broker, context, Operation.DELETE, ResourceType.GROUP, request.group_id):
        return OffsetDeleteResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not request.group_id:
        return OffsetDeleteResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    names = [topic.name for topic in request.topics]
    allowed = allowed_names(broker, context, Operation.READ, ResourceType.TOPIC, names)
    asked = (
        (topic.name, partition.partition_index)
        for topic in request.topics
        for partition in topic.partitions
    )
    places = [place async for place in yield_items(asked)]
    known = [
        place
        async for place in yield_items(places)
        if place[0] in allowed and broker.metadata.partition(*place) is not None
    ]
    error, errors = await broker.group_maintenance.delete_offsets(request.group_id, known)
    if error is not ErrorCode.NONE:
        return OffsetDeleteResponse(error_code=error)
    errors |= {
        place: ErrorCode.TOPIC_AUTHORIZATION_FAILED for place in places if place[0] not in allowed
    }
    topics: dict[str, list[OffsetDeleteResponse.OffsetDeleteResponsePartition]] = {
        name: [] for name in names if name not in allowed or name not in broker.metadata.topics
    }
    async for name, index in yield_items(places):
        topics.setdefault(name, []).append(
            OffsetDeleteResponse.OffsetDeleteResponsePartition(
                partition_index=index,
                error_code=errors.get((name, index), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            )
        )
    return OffsetDeleteResponse(
        topics=[
            OffsetDeleteResponse.OffsetDeleteResponseTopic(name=name, partitions=partitions)
            for name, partitions in topics.items()
        ]
    )
