"""ElectLeaders; only the controller serves it."""

from __future__ import annotations

from dataclasses import replace

from urteil.broker.api.authorization import may_cluster
from urteil.broker.api.broker_parts import BrokerParts
from urteil.broker.api.registry import RequestContext, RequestError, handler
from urteil.broker.base.offload import yield_items
from urteil.broker.base.purgatory import DelayedOperation
from urteil.broker.controller.api_error import ApiError
from urteil.broker.controller.partition_requests import elect_leaders_response
from urteil.broker.controller.requested_elections import ElectionOutcomes
from urteil.broker.security.acls.acl_model import Operation
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import ElectLeadersRequest, ElectLeadersResponse

PREFERRED, UNCLEAN = 0, 1
Partitions = list[tuple[str, int]]


@handler(ApiKey.ELECT_LEADERS, 0, 2)
async def elect_leaders(
    broker: BrokerParts, context: RequestContext, request: ElectLeadersRequest
) -> ElectLeadersResponse:
    """Answer once this broker's metadata has the new leaders, at most after `timeout_ms`."""
    requested = await _requested_partitions(request)
    if not may_cluster(broker, context, Operation.ALTER):
        why = ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        answer = await elect_leaders_response(
            dict.fromkeys(requested or (), why), changes_only=False
        )
        return replace(answer, error_code=why.error)
    if request.election_type not in (PREFERRED, UNCLEAN):
        raise RequestError(ErrorCode.UNKNOWN_SERVER_ERROR)
    unclean = request.election_type == UNCLEAN
    outcomes = await broker.controller.elect_leaders(requested, unclean=unclean)
    if outcomes is None:
        all_partitions = [
            (topic, partition)
            for topic, partitions in broker.metadata.topics.items()
            for partition in partitions
        ]
        partitions = all_partitions if requested is None else requested
        outcomes = dict.fromkeys(partitions, ApiError(ErrorCode.NOT_CONTROLLER))
    outcomes = await _wait_for_metadata(broker, outcomes, request.timeout_ms)
    return await elect_leaders_response(outcomes, changes_only=requested is None)


async def _requested_partitions(request: ElectLeadersRequest) -> Partitions | None:
    if request.topic_partitions is None:
        return None
    places = (
        (topic_partition.topic, partition)
        for topic_partition in request.topic_partitions
        for partition in topic_partition.partitions
    )
    return [place async for place in yield_items(places)]


async def _wait_for_metadata(
    broker: BrokerParts, outcomes: ElectionOutcomes, timeout_ms: int
) -> ElectionOutcomes:
    """Wait for the new leaders in this broker's metadata; missing ones become REQUEST_TIMED_OUT."""

    leaders = {
        tp: leader
        async for tp, leader in yield_items(outcomes.items())
        if not isinstance(leader, ApiError)
    }

    def changed_partitions() -> Partitions:
        return [
            tp
            for tp, leader in leaders.items()
            if (known := broker.metadata.partition(*tp)) is None or known.leader != leader
        ]

    def look() -> bool | None:
        return None if changed_partitions() else True

    if not leaders:
        return outcomes
    await DelayedOperation(look, lambda: False).wait([broker.metadata.on_update], timeout_ms)
    late = dict.fromkeys(changed_partitions(), ApiError(ErrorCode.REQUEST_TIMED_OUT))
    return {**outcomes, **late}
