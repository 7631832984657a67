"""JoinGroup, SyncGroup, Heartbeat, LeaveGroup."""

from __future__ import annotations

from typing import TYPE_CHECKING

from urteil.broker.api.authorization import may
from urteil.broker.api.registry import RequestContext, handler
from urteil.broker.base.offload import yield_items
from urteil.broker.groups.member import JoinRequest
from urteil.broker.security.acls.acl_model import Operation, ResourceType
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)

if TYPE_CHECKING:
    from urteil.broker.api.broker_parts import BrokerParts

NEEDS_KNOWN_ID_FROM = 4
CAN_SKIP_ASSIGNMENT_FROM = 9
NO_GENERATION = -1


@handler(ApiKey.JOIN_GROUP, 0, 9)
async def join_group(
    broker: BrokerParts, context: RequestContext, request: JoinGroupRequest
) -> JoinGroupResponse:
    """Answer when the group's rebalance completes."""
    if not may(broker, context, Operation.READ, ResourceType.GROUP, request.group_id):
        return JoinGroupResponse(
            error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED,
            generation_id=NO_GENERATION,
            protocol_name=None if context.version >= 7 else "",
        )
    client_id = context.header.client_id or ""
    instance_id = request.group_instance_id
    rebalance_timeout_ms = request.rebalance_timeout_ms
    if context.version == 0:
        rebalance_timeout_ms = request.session_timeout_ms
    result = await broker.groups.join(
        request.group_id,
        JoinRequest(
            member_id=request.member_id,
            instance_id=instance_id,
            client_id=client_id,
            client_host=f"/{context.host}",
            session_timeout_ms=request.session_timeout_ms,
            rebalance_timeout_ms=rebalance_timeout_ms,
            protocol_type=request.protocol_type,
            protocols=tuple((p.name, bytes(p.metadata)) for p in request.protocols),
            needs_known_id=context.version >= NEEDS_KNOWN_ID_FROM,
            new_member_id=broker.groups.new_member_id(
                client_id if instance_id is None else instance_id
            ),
            can_skip_assignment=context.version >= CAN_SKIP_ASSIGNMENT_FROM,
        ),
    )
    protocol = result.protocol
    if protocol is None and context.version < 7:
        protocol = ""
    return JoinGroupResponse(
        error_code=result.error,
        generation_id=result.generation,
        protocol_type=result.protocol_type,
        protocol_name=protocol,
        leader=result.leader,
        skip_assignment=result.skip_assignment,
        member_id=result.member_id,
        members=[
            JoinGroupResponse.JoinGroupResponseMember(
                member_id=member_id, group_instance_id=instance_id, metadata=metadata
            )
            for member_id, instance_id, metadata in result.members
        ],
    )


@handler(ApiKey.SYNC_GROUP, 0, 5)
async def sync_group(
    broker: BrokerParts, context: RequestContext, request: SyncGroupRequest
) -> SyncGroupResponse:
    """Answer when the leader's assignment is stored."""
    if not may(broker, context, Operation.READ, ResourceType.GROUP, request.group_id):
        return SyncGroupResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if context.version >= 5 and (request.protocol_type is None or request.protocol_name is None):
        return SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    result = await broker.groups.sync(
        request.group_id,
        request.member_id,
        request.group_instance_id,
        request.generation_id,
        request.protocol_type,
        request.protocol_name,
        {assignment.member_id: bytes(assignment.assignment) for assignment in request.assignments},
    )
    return SyncGroupResponse(
        error_code=result.error,
        protocol_type=result.protocol_type,
        protocol_name=result.protocol,
        assignment=result.assignment,
    )


@handler(ApiKey.HEARTBEAT, 0, 4)
async def heartbeat(
    broker: BrokerParts, context: RequestContext, request: HeartbeatRequest
) -> HeartbeatResponse:
    if not may(broker, context, Operation.READ, ResourceType.GROUP, request.group_id):
        return HeartbeatResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    error = broker.groups.heartbeat(
        request.group_id, request.member_id, request.group_instance_id, request.generation_id
    )
    return HeartbeatResponse(error_code=error)


@handler(ApiKey.LEAVE_GROUP, 0, 5)
async def leave_group(
    broker: BrokerParts, context: RequestContext, request: LeaveGroupRequest
) -> LeaveGroupResponse:
    """Before version 3 the error of the only member is that of the response."""
    if not may(broker, context, Operation.READ, ResourceType.GROUP, request.group_id):
        return LeaveGroupResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if context.version < 3:
        error, errors = broker.groups.leave(request.group_id, [(request.member_id, None)])
        return LeaveGroupResponse(error_code=errors[0] if errors else error)
    members = [(member.member_id, member.group_instance_id) for member in request.members]
    error, errors = broker.groups.leave(request.group_id, members)
    return LeaveGroupResponse(
        error_code=error,
        members=[
            LeaveGroupResponse.MemberResponse(
                member_id=member_id, group_instance_id=instance, error_code=one_error
            )
            async for (member_id, instance), one_error in yield_items(
                zip(members, errors, strict=False)
            )
        ],
    )
