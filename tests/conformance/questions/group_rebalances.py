"""Members that come, go and come back: what all of them are told."""

from __future__ import annotations

from typing import Any

from tests.conformance.groups import Assignment, Identity, beat, join, leave, stable, sync
from tests.conformance.questions.registry import Asked, Subject
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import LeaveGroupRequest

REBALANCE = Subject("Rebalances", ApiKey.JOIN_GROUP)


@REBALANCE.question("a second member makes the first rejoin", versions=(4, 7, 9))
def two_members(it: Asked) -> list[Any]:
    """The leader gets both subscriptions."""
    side, group, version = it.side, it.name("two"), it.version
    at, first, generation = stable(side, group)
    second = side.get(join(group), version, to=at).member_id
    side.names.update({first: "first", second: "second"})
    waiting = side.start(join(group, second), version, to=at)
    pulse = beat(group, first, generation)
    side.until(lambda: side.get(pulse, 3, to=at).error_code != ErrorCode.NONE)
    seen = [side.ask(pulse, 3, to=at), side.ask(sync(group, first, generation), 3, to=at)]
    mine = side.get(join(group, first), version, to=at)
    answers = [side.plain(mine), side.plain(waiting.answer())]
    for one in answers:
        one["members"].sort(key=lambda member: member["member_id"])
    seen += answers
    early = side.start(sync(group, second, generation + 1), 3, to=at)
    given = [Assignment(member_id=first, assignment=b"1"), Assignment(member_id=second)]
    seen.append(side.ask(sync(group, first, generation + 1, assignments=given), 3, to=at))
    seen.append(side.plain(early.answer()))
    seen.append(side.ask(beat(group, second, generation + 1), 3, to=at))
    seen.append(side.ask(beat(group, second, generation), 3, to=at))
    seen.append(side.ask(leave(group, second), 3, to=at))
    seen.append(side.ask(beat(group, first, generation + 1), 3, to=at))
    seen.append(side.ask(join(group, first), version, to=at))
    return seen


@REBALANCE.question("a static member comes back", versions=(5, 7, 9))
def static_member(it: Asked) -> list[Any]:
    """The same instance with a new member id takes the old one's place (KIP-345)."""
    side, group, instance = it.side, it.name("static"), {"group_instance_id": "box-1"}
    at, old, generation = stable(side, group, instance="box-1")
    answer = side.get(join(group, **instance), it.version, to=at)
    new = answer.member_id
    assert new != old
    side.names.update({old: "old", new: "new"})
    seen = [side.plain(answer)]
    for member in (new, old):
        seen.append(side.ask(beat(group, member, generation, **instance), 3, to=at))
    for member in (old, new):
        seen.append(side.ask(sync(group, member, generation, **instance), 3, to=at))
    seen.append(side.ask(join(group, old, **instance), it.version, to=at))
    by_name = Identity(member_id="", **instance)
    seen.append(side.ask(LeaveGroupRequest(group_id=group, members=[by_name]), 3, to=at))
    seen.append(side.ask(beat(group, new, generation, **instance), 3, to=at))
    return seen
