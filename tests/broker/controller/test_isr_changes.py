"""Which ISRs a controller lets a leader write."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from urteil.broker.controller.controller_context import ControllerContext
from urteil.broker.controller.isr_changes import (
    build_response,
    evaluate_proposals,
    request_error,
)
from urteil.broker.controller.replica_assignment import ReplicaAssignment
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import AlterPartitionRequest
from urteil.broker.zookeeper.znodes import BrokerInfo, PartitionState, TopicAssignment

TOPIC_ID = UUID(int=9)
TP = ("t", 0)
NOW = PartitionState(leader=1, leader_epoch=4, isr=(1, 2), controller_epoch=1, partition_epoch=7)


def context() -> ControllerContext:
    made = ControllerContext(controller_id=1, epoch=3, epoch_version=3)
    made.brokers = {id: BrokerInfo(id=id, endpoints=(), epoch=100 + id) for id in (1, 2, 3)}
    assignment = TopicAssignment(partitions={0: (1, 2, 3, 4)}, topic_id=TOPIC_ID)
    made.add_topic("t", assignment)
    made.record(TP, NOW)
    return made


def request(
    isr: tuple[int, ...] = (1, 2, 3),
    *,
    version: int = 3,
    epochs: dict[int, int] | None = None,
    leader: int = 1,
    topic_id: UUID = TOPIC_ID,
    name: str = "t",
    leader_epoch: int = 4,
    partition_epoch: int = 7,
    recovery: int = 0,
) -> AlterPartitionRequest:
    with_epochs = [
        AlterPartitionRequest.BrokerState(
            broker_id=broker, broker_epoch=(epochs or {}).get(broker, -1)
        )
        for broker in isr
    ]
    return AlterPartitionRequest(
        broker_id=leader,
        broker_epoch=100 + leader,
        topics=[
            AlterPartitionRequest.TopicData(
                topic_id=topic_id,
                topic_name=name,
                partitions=[
                    AlterPartitionRequest.PartitionData(
                        partition_index=0,
                        leader_epoch=leader_epoch,
                        new_isr=isr if version < 3 else (),
                        new_isr_with_epochs=with_epochs if version >= 3 else (),
                        partition_epoch=partition_epoch,
                        leader_recovery_state=recovery,
                    )
                ],
            )
        ],
    )


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_proposed_follower_joins_the_isr(version: int) -> None:
    verdicts = evaluate_proposals(context(), request(version=version), version)
    assert verdicts.answers == {}
    assert verdicts.writes == {TP: replace(NOW, isr=(1, 2, 3), controller_epoch=3)}


@pytest.mark.parametrize(
    ("proposal", "error"),
    [
        (request(leader_epoch=3), ErrorCode.FENCED_LEADER_EPOCH),
        (request(leader_epoch=5), ErrorCode.NOT_CONTROLLER),
        (request(partition_epoch=8), ErrorCode.NOT_CONTROLLER),
        (request(partition_epoch=6), ErrorCode.INVALID_UPDATE_VERSION),
        (request((1, 2, 4)), ErrorCode.INELIGIBLE_REPLICA),
        (request(epochs={3: 99}), ErrorCode.INELIGIBLE_REPLICA),
        (request((1, 5)), ErrorCode.INVALID_REQUEST),
        (request((2, 3)), ErrorCode.INVALID_REQUEST),
        (request((1, 1)), ErrorCode.INVALID_REQUEST),
        (request(()), ErrorCode.INVALID_REQUEST),
        (request(leader=2), ErrorCode.INVALID_REQUEST),
        (request((1,), recovery=1), ErrorCode.INVALID_REQUEST),
    ],
)
def test_rejected_proposals(proposal: AlterPartitionRequest, error: ErrorCode) -> None:
    verdicts = evaluate_proposals(context(), proposal, 3)
    assert verdicts.writes == {}
    assert verdicts.answers == {TP: error}


def test_current_broker_epochs_of_isr_members_are_accepted() -> None:
    assert evaluate_proposals(context(), request(epochs={3: 103}), 3).writes


def test_old_versions_get_operation_not_attempted() -> None:
    verdicts = evaluate_proposals(context(), request((1, 2, 4), version=1), 1)
    assert verdicts.answers == {TP: ErrorCode.OPERATION_NOT_ATTEMPTED}


def test_repeated_proposal_returns_the_current_state() -> None:
    made = context()
    asked = request((2, 1), partition_epoch=6)
    verdicts = evaluate_proposals(made, asked, 3)
    assert (verdicts.writes, verdicts.answers) == ({}, {TP: NOW})
    (answer,) = build_response(made, asked, 3, verdicts.answers).topics[0].partitions
    assert (answer.error_code, answer.isr, answer.partition_epoch) == (0, (1, 2), 7)


def test_brokers_in_shutdown_do_not_join_the_isr() -> None:
    made = context()
    made.shutting_down = {1, 3}
    assert evaluate_proposals(made, request(), 3).answers == {TP: ErrorCode.INELIGIBLE_REPLICA}
    assert evaluate_proposals(made, request((1,)), 3).writes


def test_unknown_topics() -> None:
    made = context()
    strange = request(topic_id=UUID(int=1))
    (answer,) = build_response(
        made, strange, 3, evaluate_proposals(made, strange, 3).answers
    ).topics
    assert answer.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
    named = request(version=1, name="nobody")
    (answer,) = build_response(made, named, 1, evaluate_proposals(made, named, 1).answers).topics
    assert answer.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    made.deleting.add("t")
    assert evaluate_proposals(made, request(), 3).answers == {
        TP: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    }


def test_only_the_registered_broker_may_ask() -> None:
    made = context()
    assert request_error(made, request()) is ErrorCode.NONE
    assert request_error(made, replace(request(), broker_epoch=-1)) is ErrorCode.STALE_BROKER_EPOCH
    assert request_error(made, request(leader=4)) is ErrorCode.STALE_BROKER_EPOCH


def test_adding_replicas_may_join_the_isr() -> None:
    made = context()
    made.assign({TP: ReplicaAssignment((1, 2)).to((3, 1))})
    assert made.replicas(TP) == (3, 1, 2)
    assert evaluate_proposals(made, request((1, 2, 3)), 3).writes
    made.assign({TP: ReplicaAssignment((3, 1))})
    assert evaluate_proposals(made, request((1, 2, 3)), 3).answers == {
        TP: ErrorCode.INVALID_REQUEST
    }
