"""CreatePartitions, ElectLeaders and reassignments: from requests to the tenure, and back.

Sources: `KafkaApis`, `ZkAdminManager.createPartitions` and `DelayedCreatePartitions`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TypeVar

from urteil.broker.base.offload import paced
from urteil.broker.controller.leader_elections import Elected
from urteil.broker.controller.mutation_quota import Take
from urteil.broker.controller.reassignment import Assignment
from urteil.broker.controller.refusal import Refusal
from urteil.broker.controller.states import TopicPartition
from urteil.broker.controller.topic_admin import Outcome
from urteil.broker.controller.topic_requests import Office, missing
from urteil.broker.security.acls import Allowed, Operation
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
from urteil.broker.zookeeper.operations import is_node_name

T = TypeVar("T")
R = TypeVar("R")
Created = CreatePartitionsResponse.CreatePartitionsTopicResult
Asked = dict[TopicPartition, tuple[int, ...] | None]


async def create_partitions(
    office: Office, request: CreatePartitionsRequest, allowed: Allowed, take: Take
) -> CreatePartitionsResponse:
    """Errors of one topic do not keep the others from growing."""
    asked = Counter(topic.name for topic in request.topics)
    outcomes: dict[str, Outcome] = {}
    may_alter: Collection[str] = ()
    if office.tenure is not None:
        may_alter = allowed(Operation.ALTER, [name for name, times in asked.items() if times == 1])
    if not all(map(is_node_name, may_alter)):  # Apache Kafka hears it from ZooKeeper, and is lost
        lost = Outcome(error=ErrorCode.UNKNOWN_SERVER_ERROR)
        return _created([(topic.name, lost) for topic in request.topics])
    async for topic in paced(request.topics, 20):
        if office.tenure is None:
            outcomes[topic.name] = Outcome(error=ErrorCode.NOT_CONTROLLER)
        elif asked[topic.name] > 1:
            outcomes[topic.name] = Outcome(
                error=ErrorCode.INVALID_REQUEST, message="Duplicate topic in request."
            )
        elif topic.name not in may_alter:
            outcomes[topic.name] = Outcome(
                error=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                message="The topic authorization is failed.",
            )
        elif office.tenure.context.is_going(topic.name):
            outcomes[topic.name] = Outcome(
                error=ErrorCode.INVALID_TOPIC_EXCEPTION, message="The topic is queued for deletion."
            )
        else:
            outcomes[topic.name] = await _grow(
                office, topic, take, validate_only=request.validate_only
            )
    grown = {name: one.partitions for name, one in outcomes.items() if one.error is ErrorCode.NONE}
    if grown and not request.validate_only:
        late = await missing(
            office,
            list(grown),
            request.timeout_ms,
            lambda tenure, name: tenure.led(name, grown[name]),
        )
        outcomes |= {name: Outcome(error=ErrorCode.REQUEST_TIMED_OUT) for name in late}
    return _created(outcomes.items())


def _created(outcomes: Iterable[tuple[str, Outcome]]) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(
        results=[
            Created(name=name, error_code=one.error, error_message=one.message)
            for name, one in outcomes
        ]
    )


async def _grow(
    office: Office,
    topic: CreatePartitionsRequest.CreatePartitionsTopic,
    take: Take,
    *,
    validate_only: bool,
) -> Outcome:
    replicas = None
    if topic.assignments is not None:
        replicas = [tuple(one.broker_ids) for one in topic.assignments]
    return await office.admin.add_partitions(
        topic.name, topic.count, replicas, validate_only=validate_only, take=take
    )


async def asked_reassignments(request: AlterPartitionReassignmentsRequest) -> Asked:
    places = ((topic.name, one) for topic in request.topics for one in topic.partitions)
    return {
        (name, one.partition_index): None if one.replicas is None else tuple(one.replicas)
        async for name, one in paced(places)
    }


async def altered(
    results: Mapping[TopicPartition, Refusal | None],
) -> AlterPartitionReassignmentsResponse:
    def answer(
        partition: int, refusal: Refusal | None
    ) -> AlterPartitionReassignmentsResponse.ReassignablePartitionResponse:
        return AlterPartitionReassignmentsResponse.ReassignablePartitionResponse(
            partition_index=partition,
            error_code=refusal.error if refusal else ErrorCode.NONE,
            error_message=refusal.message if refusal else None,
        )

    return AlterPartitionReassignmentsResponse(
        error_message="",
        responses=[
            AlterPartitionReassignmentsResponse.ReassignableTopicResponse(
                name=topic, partitions=partitions
            )
            async for topic, partitions in paced(await _by_topic(results, answer))
        ],
    )


async def listed_partitions(
    request: ListPartitionReassignmentsRequest,
) -> list[TopicPartition] | None:
    """None for all."""
    if request.topics is None:
        return None
    asked = ((topic.name, one) for topic in request.topics for one in topic.partition_indexes)
    return [place async for place in paced(asked)]


async def listed(
    under_way: Mapping[TopicPartition, Assignment],
) -> ListPartitionReassignmentsResponse:
    def answer(
        partition: int, one: Assignment
    ) -> ListPartitionReassignmentsResponse.OngoingPartitionReassignment:
        return ListPartitionReassignmentsResponse.OngoingPartitionReassignment(
            partition_index=partition,
            replicas=one.replicas,
            adding_replicas=one.adding,
            removing_replicas=one.removing,
        )

    return ListPartitionReassignmentsResponse(
        error_message="",
        topics=[
            ListPartitionReassignmentsResponse.OngoingTopicReassignment(
                name=topic, partitions=partitions
            )
            async for topic, partitions in paced(await _by_topic(under_way, answer))
        ],
    )


async def elected(outcomes: Elected, *, changes_only: bool) -> ElectLeadersResponse:
    """`changes_only` leaves out who did not need an election, as when all were asked for."""
    told = {
        tp: one
        async for tp, one in paced(outcomes.items())
        if not (
            changes_only and isinstance(one, Refusal) and one.error is ErrorCode.ELECTION_NOT_NEEDED
        )
    }
    return ElectLeadersResponse(
        replica_election_results=[
            ElectLeadersResponse.ReplicaElectionResult(topic=topic, partition_result=partitions)
            async for topic, partitions in paced(await _by_topic(told, _elected))
        ]
    )


def _elected(partition: int, outcome: int | Refusal) -> ElectLeadersResponse.PartitionResult:
    refusal = outcome if isinstance(outcome, Refusal) else None
    return ElectLeadersResponse.PartitionResult(
        partition_id=partition,
        error_code=refusal.error if refusal else ErrorCode.NONE,
        error_message=refusal.message if refusal else None,
    )


async def _by_topic(
    values: Mapping[TopicPartition, T], answer: Callable[[int, T], R]
) -> Iterable[tuple[str, list[R]]]:
    topics: dict[str, list[R]] = {}
    async for (topic, partition), one in paced(values.items()):
        topics.setdefault(topic, []).append(answer(partition, one))
    return topics.items()
