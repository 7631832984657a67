"""TxnOffsetCommit: who may commit offsets in a transaction, and what readers see of them."""

from __future__ import annotations

from typing import Any

from tests.conformance.groups import offset_fetch, stable
from tests.conformance.questions.group_administration import forget
from tests.conformance.questions.registry import Asker, Subject
from tests.conformance.questions.stage import filled
from tests.conformance.questions.transactions import STRANGERS
from tests.conformance.transactions import (
    Txn,
    begin,
    coordinator,
    end,
    new_producer,
    wait_until_settled,
)
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import DeleteGroupsRequest, DescribeGroupsRequest

COMMIT = Subject("TxnOffsetCommit", ApiKey.TXN_OFFSET_COMMIT)


@COMMIT.each("and then", {"commit": True, "abort": False})
def offsets_in_a_transaction(asker: Asker, commit: bool) -> Any:
    side, group, topic = asker.side, asker.name("offsets"), filled(asker.side)
    txn, at = new_producer(asker), side.coordinator(asker.name("offsets"))
    wait_until_settled(side, txn)
    answers = [side.ask(txn.add_offsets(group), 3, to=txn.at)]
    offsets = {(topic, 0): 5, (topic, 8): 1, ("never", 0): 2}
    answers.append(asker.ask(txn.commit_offsets(group, offsets), to=at))
    answers += positions(side, group, topic, at)
    answers.append(side.ask(txn.end(commit=commit), 3, to=txn.at))
    wait_until_settled(side, txn)
    return [*answers, *positions(side, group, topic, at)]


@COMMIT.each("and the group is deleted, then", {"commit": True, "abort": False}, versions=(3,))
def group_deleted(asker: Asker, commit: bool) -> Any:
    """With what the transaction would have committed."""
    side, group, topic = asker.side, asker.name("deleted"), filled(asker.side)
    txn, at = pending(asker, group, topic)
    known = DescribeGroupsRequest(groups=[group])
    answers = [side.ask(known, 4, to=at)]
    answers.append(side.ask(DeleteGroupsRequest(groups_names=[group]), 1, to=at))
    answers.append(side.ask(known, 4, to=at))
    end(side, txn, commit=commit)
    return [*answers, *positions(side, group, topic, at), side.ask(known, 4, to=at)]


@COMMIT.question("and the position is deleted", versions=(3,))
def position_deleted(asker: Asker) -> Any:
    """It does not come with the transaction's end; the group stays until then."""
    side, group, topic = asker.side, asker.name("forgotten"), filled(asker.side)
    txn, at = pending(asker, group, topic)
    known = DescribeGroupsRequest(groups=[group])
    answers = [side.ask(forget(group, (topic, 0)), 0, to=at), *positions(side, group, topic, at)]
    answers.append(side.ask(known, 4, to=at))
    end(side, txn, commit=True)
    return [*answers, *positions(side, group, topic, at), side.ask(known, 4, to=at)]


def pending(asker: Asker, group: str, topic: str) -> tuple[Txn, int]:
    """A transaction that has two positions of the group, and the group's coordinator."""
    txn, at = new_producer(asker), asker.side.coordinator(group)
    wait_until_settled(asker.side, txn)
    asker.side.ask(txn.add_offsets(group), 3, to=txn.at)
    answer = asker.side.get(txn.commit_offsets(group, {(topic, 0): 5, (topic, 1): 6}), 3, to=at)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE, answer
    return txn, at


def positions(side: Any, group: str, topic: str, at: int) -> list[Any]:
    """As a reader sees them who waits for open transactions, and one who does not."""
    request = offset_fetch(7, (group, [(topic, [0, 1])]))
    waits = type(request)(group_id=group, topics=request.topics, require_stable=True)
    return [side.ask(request, 7, to=at), side.ask(waits, 7, to=at)]


@COMMIT.question("without the group in the transaction")
def offsets_not_added(asker: Asker) -> Any:
    txn, group = new_producer(asker), asker.name("offsets")
    at = asker.side.coordinator(group)
    return asker.ask(txn.commit_offsets(group, {(filled(asker.side), 0): 5}), to=at)


@COMMIT.each("by", STRANGERS)
def offsets_by(asker: Asker, changes: dict[str, Any]) -> Any:
    side, group = asker.side, asker.name("offsets")
    txn = begin(side, asker.name("txn"))
    side.ask(txn.add_offsets(group), 3, to=txn.at)
    other = txn.other(**changes)
    coordinator(side, other.name)
    offsets = {(filled(side), 0): 5}
    return asker.ask(other.commit_offsets(group, offsets), to=side.coordinator(group))


MEMBERS = {
    "the member": ({}, 0),
    "another member": ({"member_id": "nobody"}, 0),
    "an older generation": ({}, -1),
    "no member": ({"member_id": ""}, -1000),
    "an unknown instance": ({"group_instance_id": "unknown"}, 0),
}


@COMMIT.each("by", {f"{who} of a group": case for who, case in MEMBERS.items()}, since=3)
def offsets_by_members(asker: Asker, case: tuple[dict[str, Any], int]) -> Any:
    side, group, topic = asker.side, asker.name("members"), filled(asker.side)
    at, member, generation = stable(side, group)
    txn = new_producer(asker)
    side.ask(txn.add_offsets(group), 3, to=txn.at)
    changes, delta = case
    who = {"member_id": member, "generation_id": max(generation + delta, -1), **changes}
    answer = asker.ask(txn.commit_offsets(group, {(topic, 0): 5}, **who), to=at)
    end(side, txn, commit=False)
    return answer


@COMMIT.question("by a member of a group that has none", since=3)
def offsets_of_no_members(asker: Asker) -> list[Any]:
    """Without a generation anybody may, whatever they call themselves."""
    side, group = asker.side, asker.name("empty")
    txn, at = new_producer(asker), side.coordinator(group)
    side.ask(txn.add_offsets(group), 3, to=txn.at)
    offsets, answers = {(filled(side), 0): 5}, []
    for who in ({"member_id": "nobody"}, {"group_instance_id": "nobody"}, {"generation_id": 1}):
        answers.append(asker.ask(txn.commit_offsets(group, offsets, **who), to=at))
    end(side, txn, commit=False)
    return answers
