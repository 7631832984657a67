"""TxnOffsetCommit: who may commit offsets in a transaction, and what readers see of them."""

from __future__ import annotations

from typing import Any

from tests.conformance.groups import offset_fetch, stable
from tests.conformance.questions.group_administration import forget
from tests.conformance.questions.registry import Asked, Subject
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
def offsets_in_a_transaction(it: Asked, commit: bool) -> Any:
    side, group, topic = it.side, it.name("offsets"), filled(it.side)
    txn, at = new_producer(it), side.coordinator(it.name("offsets"))
    wait_until_settled(side, txn)
    seen = [side.ask(txn.add_offsets(group), 3, to=txn.at)]
    offsets = {(topic, 0): 5, (topic, 8): 1, ("never", 0): 2}
    seen.append(it.ask(txn.commit_offsets(group, offsets), to=at))
    seen += positions(side, group, topic, at)
    seen.append(side.ask(txn.end(commit=commit), 3, to=txn.at))
    wait_until_settled(side, txn)
    return [*seen, *positions(side, group, topic, at)]


@COMMIT.each("and the group is deleted, then", {"commit": True, "abort": False}, versions=(3,))
def group_deleted(it: Asked, commit: bool) -> Any:
    """With what the transaction would have committed."""
    side, group, topic = it.side, it.name("deleted"), filled(it.side)
    txn, at = pending(it, group, topic)
    known = DescribeGroupsRequest(groups=[group])
    seen = [side.ask(known, 4, to=at)]
    seen.append(side.ask(DeleteGroupsRequest(groups_names=[group]), 1, to=at))
    seen.append(side.ask(known, 4, to=at))
    end(side, txn, commit=commit)
    return [*seen, *positions(side, group, topic, at), side.ask(known, 4, to=at)]


@COMMIT.question("and the position is deleted", versions=(3,))
def position_deleted(it: Asked) -> Any:
    """It does not come with the transaction's end; the group stays until then."""
    side, group, topic = it.side, it.name("forgotten"), filled(it.side)
    txn, at = pending(it, group, topic)
    known = DescribeGroupsRequest(groups=[group])
    seen = [side.ask(forget(group, (topic, 0)), 0, to=at), *positions(side, group, topic, at)]
    seen.append(side.ask(known, 4, to=at))
    end(side, txn, commit=True)
    return [*seen, *positions(side, group, topic, at), side.ask(known, 4, to=at)]


def pending(it: Asked, group: str, topic: str) -> tuple[Txn, int]:
    """A transaction that has two positions of the group, and the group's coordinator."""
    txn, at = new_producer(it), it.side.coordinator(group)
    wait_until_settled(it.side, txn)
    it.side.ask(txn.add_offsets(group), 3, to=txn.at)
    answer = it.side.get(txn.commit_offsets(group, {(topic, 0): 5, (topic, 1): 6}), 3, to=at)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE, answer
    return txn, at


def positions(side: Any, group: str, topic: str, at: int) -> list[Any]:
    """As a reader sees them who waits for open transactions, and one who does not."""
    request = offset_fetch(7, (group, [(topic, [0, 1])]))
    waits = type(request)(group_id=group, topics=request.topics, require_stable=True)
    return [side.ask(request, 7, to=at), side.ask(waits, 7, to=at)]


@COMMIT.question("without the group in the transaction")
def offsets_not_added(it: Asked) -> Any:
    txn, group = new_producer(it), it.name("offsets")
    at = it.side.coordinator(group)
    return it.ask(txn.commit_offsets(group, {(filled(it.side), 0): 5}), to=at)


@COMMIT.each("by", STRANGERS)
def offsets_by(it: Asked, changes: dict[str, Any]) -> Any:
    side, group = it.side, it.name("offsets")
    txn = begin(side, it.name("txn"))
    side.ask(txn.add_offsets(group), 3, to=txn.at)
    other = txn.other(**changes)
    coordinator(side, other.name)
    offsets = {(filled(side), 0): 5}
    return it.ask(other.commit_offsets(group, offsets), to=side.coordinator(group))


MEMBERS = {
    "the member": ({}, 0),
    "another member": ({"member_id": "nobody"}, 0),
    "an older generation": ({}, -1),
    "no member": ({"member_id": ""}, -1000),
    "an unknown instance": ({"group_instance_id": "unknown"}, 0),
}


@COMMIT.each("by", {f"{who} of a group": case for who, case in MEMBERS.items()}, since=3)
def offsets_by_members(it: Asked, case: tuple[dict[str, Any], int]) -> Any:
    side, group, topic = it.side, it.name("members"), filled(it.side)
    at, member, generation = stable(side, group)
    txn = new_producer(it)
    side.ask(txn.add_offsets(group), 3, to=txn.at)
    changes, delta = case
    who = {"member_id": member, "generation_id": max(generation + delta, -1), **changes}
    answer = it.ask(txn.commit_offsets(group, {(topic, 0): 5}, **who), to=at)
    end(side, txn, commit=False)
    return answer


@COMMIT.question("by a member of a group that has none", since=3)
def offsets_of_no_members(it: Asked) -> list[Any]:
    """Without a generation anybody may, whatever they call themselves."""
    side, group = it.side, it.name("empty")
    txn, at = new_producer(it), side.coordinator(group)
    side.ask(txn.add_offsets(group), 3, to=txn.at)
    offsets, seen = {(filled(side), 0): 5}, []
    for who in ({"member_id": "nobody"}, {"group_instance_id": "nobody"}, {"generation_id": 1}):
        seen.append(it.ask(txn.commit_offsets(group, offsets, **who), to=at))
    end(side, txn, commit=False)
    return seen
