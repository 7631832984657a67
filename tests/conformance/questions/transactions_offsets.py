"""TxnOffsetCommit: who may commit offsets in a transaction, and what readers see of them."""

from __future__ import annotations

from typing import Any

from tests.conformance.groups import fetched, stable
from tests.conformance.questions.registry import Asked, Subject
from tests.conformance.questions.stage import filled
from tests.conformance.questions.transactions import STRANGERS
from tests.conformance.transactions import begin, coordinator, end, of, settled
from urteil.broker.wire.api_keys import ApiKey

COMMIT = Subject("TxnOffsetCommit", ApiKey.TXN_OFFSET_COMMIT)


@COMMIT.each("and then", {"commit": True, "abort": False})
def offsets_in_a_transaction(it: Asked, commit: bool) -> Any:
    side, group, topic = it.side, it.name("offsets"), filled(it.side)
    txn, at = of(it), side.coordinator(it.name("offsets"))
    settled(side, txn)
    seen = [side.ask(txn.add_offsets(group), 3, to=txn.at)]
    offsets = {(topic, 0): 5, (topic, 8): 1, ("never", 0): 2}
    seen.append(it.ask(txn.commit_offsets(group, offsets), to=at))
    seen += positions(side, group, topic, at)
    seen.append(side.ask(txn.end(commit=commit), 3, to=txn.at))
    settled(side, txn)
    return [*seen, *positions(side, group, topic, at)]


def positions(side: Any, group: str, topic: str, at: int) -> list[Any]:
    """As a reader sees them who waits for open transactions, and one who does not."""
    request = fetched(7, (group, [(topic, [0, 1])]))
    waits = type(request)(group_id=group, topics=request.topics, require_stable=True)
    return [side.ask(request, 7, to=at), side.ask(waits, 7, to=at)]


@COMMIT.question("without the group in the transaction")
def offsets_not_added(it: Asked) -> Any:
    txn, group = of(it), it.name("offsets")
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
    txn = of(it)
    side.ask(txn.add_offsets(group), 3, to=txn.at)
    changes, delta = case
    who = {"member_id": member, "generation_id": max(generation + delta, -1), **changes}
    answer = it.ask(txn.commit_offsets(group, {(topic, 0): 5}, **who), to=at)
    end(side, txn, commit=False)
    return answer
