"""CreatePartitions, ElectLeaders and reassignments: requests in, calls of the term, responses out.

Sources: `KafkaApis`, `ZkAdminManager.createPartitions` and `DelayedCreatePartitions`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TypeVar

from urteil.broker.base.offload import run_pipelined, yield_items
from urteil.broker.controller.api_error import ApiError
from urteil.broker.controller.mutation_quota import Take
from urteil.broker.controller.replica_assignment import ReplicaAssignment
from urteil.broker.controller.requested_elections import (
    ELECTION_NOT_NEEDED,
    ElectionOutcomes,
)
from urteil.broker.controller.statuses import TopicPartition
from urteil.broker.controller.topic_admin import TopicResult, no_such_topic
from urteil.broker.controller.topic_requests import ActiveController, wait_for_topics
from urteil.broker.security.acls.acl_model import Allowed, Operation
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    ElectLeadersResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from urteil.broker.zookeeper.session_types import is_node_name

T = TypeVar("T")
R = TypeVar("R")
Created = CreatePartitionsResponse.CreatePartitionsTopicResult
RequestedTargets = dict[TopicPartition, tuple[int, ...] | None]


async def create_partitions(
    controller: ActiveController, request: CreatePartitionsRequest, allowed: Allowed, take: Take
) -> CreatePartitionsResponse:
    """Extend each topic; an error of one does not affect the others."""
    requested = Counter(topic.name for topic in request.topics)
    outcomes: dict[str, TopicResult] = {}
    may_alter: AbstractSet[str] = frozenset()
    if controller.term is not None:
        may_alter = allowed(
            Operation.ALTER, [name for name, times in requested.items() if times == 1]
        )
    if not all(map(is_node_name, may_alter)):  # Apache Kafka fails the request in ZooKeeper
        lost = TopicResult(error=ErrorCode.UNKNOWN_SERVER_ERROR)
        return await _create_response([(topic.name, lost) for topic in request.topics])
    to_grow: list[CreatePartitionsRequest.CreatePartitionsTopic] = []
    async for topic in yield_items(request.topics):
        if controller.term is None:
            outcomes[topic.name] = TopicResult(error=ErrorCode.NOT_CONTROLLER)
        elif requested[topic.name] > 1:
            outcomes[topic.name] = TopicResult(
                error=ErrorCode.INVALID_REQUEST, message="Duplicate topic in request."
            )
        elif topic.name not in may_alter:
            outcomes[topic.name] = TopicResult(
                error=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                message="The topic authorization is failed.",
            )
        elif controller.term.context.is_deletion_requested(topic.name):
            outcomes[topic.name] = TopicResult(
                error=ErrorCode.INVALID_TOPIC_EXCEPTION, message="The topic is queued for deletion."
            )
        else:
            to_grow.append(topic)
            outcomes[topic.name] = TopicResult()  # keeps the order of the request
    outcomes |= await _grow(controller, to_grow, take, validate_only=request.validate_only)
    grown = {
        name: outcome.partitions
        for name, outcome in outcomes.items()
        if outcome.error is ErrorCode.NONE
    }
    if grown and not request.validate_only:
        timed_out = await wait_for_topics(
            controller,
            list(grown),
            request.timeout_ms,
            lambda term, name: term.has_leaders(name, grown[name]),
        )
        outcomes |= {name: TopicResult(error=ErrorCode.REQUEST_TIMED_OUT) for name in timed_out}
    return await _create_response(outcomes.items())


async def _create_response(outcomes: Iterable[tuple[str, TopicResult]]) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(
        results=[
            Created(name=name, error_code=outcome.error, error_message=outcome.message)
            async for name, outcome in yield_items(outcomes)
        ]
    )


async def _grow(
    controller: ActiveController,
    topics: Sequence[CreatePartitionsRequest.CreatePartitionsTopic],
    take: Take,
    *,
    validate_only: bool,
) -> dict[str, TopicResult]:
    racks = await controller.admin.racks() if topics else {}
    missing = await controller.admin.missing_topics([topic.name for topic in topics])

    async def grow(topic: CreatePartitionsRequest.CreatePartitionsTopic) -> TopicResult:
        replicas = None
        if topic.assignments is not None:
            replicas = [tuple(assignment.broker_ids) for assignment in topic.assignments]
        return await controller.admin.add_partitions(
            racks, topic.name, topic.count, replicas, validate_only=validate_only, take=take
        )

    to_grow = [topic async for topic in yield_items(topics) if topic.name not in missing]
    outcomes = await run_pipelined(grow, to_grow)
    results = {name: no_such_topic(name) async for name in yield_items(missing)}
    return results | dict(zip((topic.name for topic in to_grow), outcomes, strict=True))


async def requested_targets(request: AlterPartitionReassignmentsRequest) -> RequestedTargets:
    places = ((topic.name, partition) for topic in request.topics for partition in topic.partitions)
    return {
        (name, partition.partition_index): None
        if partition.replicas is None
        else tuple(partition.replicas)
        async for name, partition in yield_items(places)
    }


async def alter_response(
    results: Mapping[TopicPartition, ApiError | None],
) -> AlterPartitionReassignmentsResponse:
    def answer(
        partition: int, api_error: ApiError | None
    ) -> AlterPartitionReassignmentsResponse.ReassignablePartitionResponse:
        return AlterPartitionReassignmentsResponse.ReassignablePartitionResponse(
            partition_index=partition,
            error_code=api_error.error if api_error else ErrorCode.NONE,
            error_message=api_error.message if api_error else None,
        )

    return AlterPartitionReassignmentsResponse(
        error_message="",
        responses=[
            AlterPartitionReassignmentsResponse.ReassignableTopicResponse(
                name=topic, partitions=partitions
            )
            async for topic, partitions in yield_items(await _by_topic(results, answer))
        ],
    )


async def partitions_to_list(
    request: ListPartitionReassignmentsRequest,
) -> list[TopicPartition] | None:
    """The partitions to list; None means all."""
    if request.topics is None:
        return None
    requested = (
        (topic.name, partition_index)
        for topic in request.topics
        for partition_index in topic.partition_indexes
    )
    return [place async for place in yield_items(requested)]


async def list_response(
    under_way: Mapping[TopicPartition, ReplicaAssignment],
) -> ListPartitionReassignmentsResponse:
    def answer(
        partition: int, assignment: ReplicaAssignment
    ) -> ListPartitionReassignmentsResponse.OngoingPartitionReassignment:
        return ListPartitionReassignmentsResponse.OngoingPartitionReassignment(
            partition_index=partition,
            replicas=assignment.replicas,
            adding_replicas=assignment.adding,
            removing_replicas=assignment.removing,
        )

    return ListPartitionReassignmentsResponse(
        error_message="",
        topics=[
            ListPartitionReassignmentsResponse.OngoingTopicReassignment(
                name=topic, partitions=partitions
            )
            async for topic, partitions in yield_items(await _by_topic(under_way, answer))
        ],
    )


async def elect_leaders_response(
    outcomes: ElectionOutcomes, *, changes_only: bool
) -> ElectLeadersResponse:
    """`changes_only` leaves out the partitions that needed no election."""
    reported = {
        tp: outcome
        async for tp, outcome in yield_items(outcomes.items())
        if not (changes_only and outcome == ELECTION_NOT_NEEDED)
    }
    return ElectLeadersResponse(
        replica_election_results=[
            ElectLeadersResponse.ReplicaElectionResult(topic=topic, partition_result=partitions)
            async for topic, partitions in yield_items(await _by_topic(reported, _election_result))
        ]
    )


def _election_result(
    partition: int, outcome: int | ApiError
) -> ElectLeadersResponse.PartitionResult:
    api_error = outcome if isinstance(outcome, ApiError) else None
    return ElectLeadersResponse.PartitionResult(
        partition_id=partition,
        error_code=api_error.error if api_error else ErrorCode.NONE,
        error_message=api_error.message if api_error else None,
    )


async def _by_topic(
    values: Mapping[TopicPartition, T], answer: Callable[[int, T], R]
) -> Iterable[tuple[str, list[R]]]:
    topics: dict[str, list[R]] = {}
    async for (topic, partition), value in yield_items(values.items()):
        topics.setdefault(topic, []).append(answer(partition, value))
    return topics.items()
