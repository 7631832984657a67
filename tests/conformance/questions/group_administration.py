"""ListGroups, DescribeGroups, DeleteGroups and OffsetDelete."""

from __future__ import annotations

from typing import Any

from tests.conformance.groups import commit, join, leave, offset_fetch, stable
from tests.conformance.questions.delete_topics import request as delete_topics
from tests.conformance.questions.registry import Asked, Subject
from tests.conformance.questions.stage import filled
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.messages import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    ListGroupsRequest,
    OffsetDeleteRequest,
)

LIST = Subject("ListGroups", ApiKey.LIST_GROUPS)
DESCRIBE = Subject("DescribeGroups", ApiKey.DESCRIBE_GROUPS)
DELETE = Subject("DeleteGroups", ApiKey.DELETE_GROUPS)
FORGET = Subject("OffsetDelete", ApiKey.OFFSET_DELETE)

FILTERS: dict[str, dict[str, list[str]]] = {
    "none": {},
    "the state": {"states_filter": ["Stable"]},
    "the state in small letters": {"states_filter": ["stable"]},
    "another state": {"states_filter": ["Empty", "Dead"]},
    "no state": {"states_filter": ["MalformedMessage"]},
    "the kind": {"types_filter": ["classic"]},
    "another kind": {"types_filter": ["Consumer"]},
    "no kind": {"types_filter": ["nonsense"]},
}


@LIST.each("with the filter", FILTERS)
def listed(it: Asked, filters: dict[str, list[str]]) -> Any:
    group = it.name("listed")
    at, _, _ = stable(it.side, group)
    describe(it, at, group)  # Apache Kafka answers SyncGroup a moment before the group is stable
    answer = it.ask(ListGroupsRequest(**filters), to=at)
    mine = [one for one in answer["groups"] if one["group_id"] == group]
    return {**answer, "groups": mine}


def describe(it: Asked, at: int, *groups: str, allowed: bool = False) -> Any:
    request = DescribeGroupsRequest(groups=groups, include_authorized_operations=allowed)
    answer = it.ask(request, to=at)
    for group in answer["groups"]:
        for member in group["members"]:
            member["member_id"] = member["member_id"][:6]
    return answer


@DESCRIBE.question("stable, emptied, unknown")
def described(it: Asked) -> Any:
    group = it.name("described")
    at, member, _ = stable(it.side, group)
    seen = [describe(it, at, group, allowed=it.version >= 3)]
    it.side.ask(leave(group, member), 1, to=at)
    seen.append(describe(it, at, group))
    nobody = it.side.coordinator("nobody")
    return [*seen, describe(it, nobody, "nobody", "nobody"), describe(it, at)]


@DESCRIBE.question("of an instance")
def described_static(it: Asked) -> Any:
    group = it.name("static")
    at, _, _ = stable(it.side, group, instance="i1")
    return describe(it, at, group)


@DESCRIBE.question("with offsets alone")
def described_simple(it: Asked) -> Any:
    group = it.name("simple")
    at = it.side.coordinator(group)
    it.side.ask(commit(group, [(filled(it.side), 0, 1)]), 8, to=at)
    return describe(it, at, group, allowed=it.version >= 3)


@DESCRIBE.question("when a topic is deleted", versions=(4,))
def described_of_a_deleted_topic(it: Asked) -> list[Any]:
    """A group goes with its last position, and so does any that has none and no members."""
    side, topic, seen = it.side, it.topic(), []
    simple, nothing = it.name("simple"), it.name("nothing")
    at = {group: side.coordinator(group) for group in (simple, nothing)}
    side.ask(commit(simple, [(topic, 0, 1)]), 8, to=at[simple])
    seen.append(side.ask(join(nothing, protocols=[]), 3, to=at[nothing]))  # refused, but known
    seen += [describe(it, to, group) for group, to in at.items()]
    it.side.ask(delete_topics(topic), 5, to=side.controller())
    for group, to in at.items():
        side.until(lambda g=group, to=to: "Dead" in str(describe(it, to, g)))  # type: ignore[misc]
    return seen


@DESCRIBE.question("not the coordinator")
def described_elsewhere(it: Asked) -> Any:
    at = it.side.coordinator(it.name("elsewhere"))
    return describe(it, at % 3 + 1, it.name("elsewhere"))


@DELETE.question("with members, without, again")
def deleted(it: Asked) -> Any:
    group = it.name("deleted")
    at, member, generation = stable(it.side, group)
    topic = filled(it.side)
    known = commit(group, [(topic, 0, 3)], member=member, generation=generation)
    it.side.ask(known, 8, to=at)
    request = DeleteGroupsRequest(groups_names=[group])
    seen = [it.ask(request, to=at)]
    it.side.ask(leave(group, member), 1, to=at)
    seen += [it.ask(request, to=at), it.ask(request, to=at)]
    seen.append(it.side.ask(offset_fetch(7, (group, [(topic, [0])])), 7, to=at))
    seen.append(it.side.ask(join(group, "gone"), 3, to=at))
    return seen


@DELETE.question("unknown, elsewhere")
def deleted_unknown(it: Asked) -> Any:
    at = it.side.coordinator("nobody")
    return [
        it.ask(DeleteGroupsRequest(groups_names=["nobody"]), to=at),
        it.ask(DeleteGroupsRequest(groups_names=["nobody"]), to=at % 3 + 1),
    ]


@DELETE.question("with offsets alone")
def deleted_simple(it: Asked) -> Any:
    group, topic = it.name("simple"), filled(it.side)
    at = it.side.coordinator(group)
    it.side.ask(commit(group, [(topic, 0, 1)]), 8, to=at)
    seen = [it.ask(DeleteGroupsRequest(groups_names=[group]), to=at)]
    return [*seen, it.side.ask(offset_fetch(7, (group, [(topic, [0])])), 7, to=at)]


def forget(group: str, *places: tuple[str, int]) -> OffsetDeleteRequest:
    kind = OffsetDeleteRequest
    return kind(
        group_id=group,
        topics=[
            kind.OffsetDeleteRequestTopic(
                name=name, partitions=[kind.OffsetDeleteRequestPartition(partition_index=index)]
            )
            for name, index in places
        ],
    )


@FORGET.question("of a group without members")
def forgotten(it: Asked) -> Any:
    group, topic = it.name("forget"), filled(it.side)
    at = it.side.coordinator(group)
    it.side.ask(commit(group, [(topic, 0, 1), (topic, 1, 2)]), 8, to=at)
    seen = [it.ask(forget(group, (topic, 0), ("never", 0)), to=at)]
    seen.append(it.side.ask(offset_fetch(7, (group, [(topic, [0, 1])])), 7, to=at))
    seen.append(it.ask(forget(group, (topic, 0)), to=at))
    return [*seen, it.ask(forget(group), to=at)]


@FORGET.question("of a group's last position")
def forgotten_wholly(it: Asked) -> Any:
    """With it the group goes, one that never had a member and one that was left."""
    seen, topic = [], filled(it.side)
    for group in (it.name("simple"), it.name("left")):
        at = it.side.coordinator(group)
        if "left" in group:
            at, member, generation = stable(it.side, group)
            known = commit(group, [(topic, 1, 3)], member=member, generation=generation)
            it.side.ask(known, 8, to=at)
            it.side.ask(leave(group, member), 1, to=at)
        else:
            it.side.ask(commit(group, [(topic, 1, 3)]), 8, to=at)
        seen += [it.ask(forget(group, (topic, 1)), to=at) for _ in range(2)]
        seen.append(it.side.ask(DescribeGroupsRequest(groups=[group]), 4, to=at))
        seen.append(it.side.ask(DeleteGroupsRequest(groups_names=[group]), 1, to=at))
    return seen


@FORGET.question("of a group with members")
def forgotten_of_members(it: Asked) -> Any:
    """The members' metadata names no topics that could be read."""
    group, topic = it.name("members"), filled(it.side)
    at, member, generation = stable(it.side, group)
    known = commit(group, [(topic, 0, 3)], member=member, generation=generation)
    it.side.ask(known, 8, to=at)
    return [it.ask(forget(group, (topic, 0)), to=at)]


@FORGET.question("of an unknown group")
def forgotten_unknown(it: Asked) -> Any:
    at = it.side.coordinator("nobody")
    topic = filled(it.side)
    return [it.ask(forget("nobody", (topic, 0)), to=at)]
