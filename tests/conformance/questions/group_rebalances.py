"""Members that join, leave and rejoin, and the answers to all of them."""

from __future__ import annotations

from typing import Any

from tests.conformance.groups import (
    Assignment,
    Identity,
    Protocol,
    beat,
    join,
    leave,
    stable,
    stored,
    sync,
)
from tests.conformance.questions.registry import Asker, Subject
from tests.conformance.side import Side
from urteil.broker.groups.records import decode_group, decode_group_key
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import LeaveGroupRequest

REBALANCE = Subject("Rebalances", ApiKey.JOIN_GROUP)


@REBALANCE.question("a second member makes the first rejoin", versions=(4, 7, 9))
def two_members(asker: Asker) -> list[Any]:
    """The leader gets both subscriptions."""
    side, group, version = asker.side, asker.name("two"), asker.version
    at, first, generation = stable(side, group)
    second = side.get(join(group), version, to=at).member_id
    side.names.update({first: "first", second: "second"})
    waiting = side.start(join(group, second), version, to=at)
    pulse = beat(group, first, generation)
    side.until(lambda: side.get(pulse, 3, to=at).error_code != ErrorCode.NONE)
    results = [side.ask(pulse, 3, to=at), side.ask(sync(group, first, generation), 3, to=at)]
    mine = side.get(join(group, first), version, to=at)
    answers = [side.plain(mine), side.plain(waiting.answer())]
    for answer in answers:
        answer["members"].sort(key=lambda member: member["member_id"])
    results += answers
    early = side.start(sync(group, second, generation + 1), 3, to=at)
    given = [Assignment(member_id=first, assignment=b"1"), Assignment(member_id=second)]
    results.append(side.ask(sync(group, first, generation + 1, assignments=given), 3, to=at))
    results.append(side.plain(early.answer()))
    results.append(side.ask(beat(group, second, generation + 1), 3, to=at))
    results.append(side.ask(beat(group, second, generation), 3, to=at))
    results.append(side.ask(leave(group, second), 3, to=at))
    results.append(side.ask(beat(group, first, generation + 1), 3, to=at))
    results.append(side.ask(join(group, first), version, to=at))
    return results


@REBALANCE.question("a static member comes back", versions=(5, 7, 9))
def static_member(asker: Asker) -> list[Any]:
    """The same instance with a new member id takes the old one's place (KIP-345)."""
    side, group, instance = asker.side, asker.name("static"), {"group_instance_id": "box-1"}
    at, old, generation = stable(side, group, instance="box-1")
    answer = side.get(join(group, **instance), asker.version, to=at)
    new = answer.member_id
    assert new != old
    side.names.update({old: "old", new: "new"})
    answers = [side.plain(answer)]
    for member in (new, old):
        answers.append(side.ask(beat(group, member, generation, **instance), 3, to=at))
    for member in (old, new):
        answers.append(side.ask(sync(group, member, generation, **instance), 3, to=at))
    answers.append(side.ask(join(group, old, **instance), asker.version, to=at))
    by_name = Identity(member_id="", **instance)
    answers.append(side.ask(LeaveGroupRequest(group_id=group, members=[by_name]), 3, to=at))
    answers.append(side.ask(beat(group, new, generation, **instance), 3, to=at))
    return answers


@REBALANCE.question("a static member comes back otherwise", versions=(5, 9))
def static_member_changed(asker: Asker) -> list[Any]:
    """With other metadata nobody is disturbed; with another protocol all join again."""
    side, group, instance = asker.side, asker.name("static"), {"group_instance_id": "box-1"}
    at, old, _ = stable(side, group, instance="box-1")
    other = [Protocol(name="range", metadata=b"R"), Protocol(name="other", metadata=b"o")]
    answers = []
    for protocols in (other, other[::-1]):
        answer = side.get(join(group, protocols=protocols, **instance), asker.version, to=at)
        side.names.update({old: "old", answer.member_id: "new"})
        answers.append([side.plain(answer), stored_members(side, group)])
        old = answer.member_id
    return answers


def stored_members(side: Side, group: str) -> list[Any]:
    """Who is in a group by its last record in the offsets topic, as a later coordinator reads."""
    groups = [
        decode_group(record.value)
        for record in stored(side, group)
        if decode_group_key(record.key) == group and record.value is not None
    ]
    return [
        (side.names.get(member.member_id), member.subscription) for member in groups[-1].members
    ]


@REBALANCE.question("members that are not what they were", versions=(5, 7, 9))
def members_that_change(asker: Asker) -> list[Any]:
    """A lone one with other protocols, one with an instance all of a sudden, and one that is to
    come back with its id and brings an instance."""
    side, group = asker.side, asker.name("odd")
    at, member, generation = stable(side, group)
    strange = [Protocol(name="strange", metadata=b"s")]
    answers = [
        side.ask(join(group, member, protocols=strange), asker.version, to=at),
        side.ask(join(group, member, group_instance_id="box"), asker.version, to=at),
        side.ask(join(group, member, group_instance_id=""), asker.version, to=at),
    ]
    to_come = side.get(join(group), asker.version, to=at).member_id
    side.names[to_come] = "one to come"
    answers.append(side.ask(join(group, to_come, group_instance_id="box"), asker.version, to=at))
    answers.append(side.ask(leave(group, to_come), 3, to=at))
    answers.append(side.ask(beat(group, member, generation), 3, to=at))
    return answers


@REBALANCE.question("a member leaves while it joins", versions=(5, 9))
def leaves_while_it_joins(asker: Asker) -> list[Any]:
    side, group = asker.side, asker.name("leaver")
    at, member, generation = stable(side, group)
    waiting = side.start(join(group, group_instance_id="box"), asker.version, to=at)
    pulse = beat(group, member, generation)
    side.until(lambda: side.get(pulse, 3, to=at).error_code != ErrorCode.NONE)
    by_name = Identity(member_id="", group_instance_id="box")
    answers = [side.ask(LeaveGroupRequest(group_id=group, members=[by_name]), 3, to=at)]
    return [*answers, side.plain(waiting.answer())]
