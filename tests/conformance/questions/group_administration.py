"""ListGroups, DescribeGroups, DeleteGroups and OffsetDelete."""

from __future__ import annotations

from typing import Any

from tests.conformance.groups import commit, join, leave, offset_fetch, stable
from tests.conformance.questions.delete_topics import request as delete_topics
from tests.conformance.questions.registry import Asker, Subject
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
def listed(asker: Asker, filters: dict[str, list[str]]) -> Any:
    group = asker.name("listed")
    at, _, _ = stable(asker.side, group)
    describe(asker, at, group)  # Apache Kafka answers SyncGroup a moment before the group is stable
    answer = asker.ask(ListGroupsRequest(**filters), to=at)
    mine = [row for row in answer["groups"] if row["group_id"] == group]
    return {**answer, "groups": mine}


def describe(asker: Asker, at: int, *groups: str, allowed: bool = False) -> Any:
    request = DescribeGroupsRequest(groups=groups, include_authorized_operations=allowed)
    answer = asker.ask(request, to=at)
    for group in answer["groups"]:
        for member in group["members"]:
            member["member_id"] = member["member_id"][:6]
    return answer


@DESCRIBE.question("stable, emptied, unknown")
def described(asker: Asker) -> Any:
    group = asker.name("described")
    at, member, _ = stable(asker.side, group)
    answers = [describe(asker, at, group, allowed=asker.version >= 3)]
    asker.side.ask(leave(group, member), 1, to=at)
    answers.append(describe(asker, at, group))
    nobody = asker.side.coordinator("nobody")
    return [*answers, describe(asker, nobody, "nobody", "nobody"), describe(asker, at)]


@DESCRIBE.question("of an instance")
def described_static(asker: Asker) -> Any:
    group = asker.name("static")
    at, _, _ = stable(asker.side, group, instance="i1")
    return describe(asker, at, group)


@DESCRIBE.question("with offsets alone")
def described_simple(asker: Asker) -> Any:
    group = asker.name("simple")
    at = asker.side.coordinator(group)
    asker.side.ask(commit(group, [(filled(asker.side), 0, 1)]), 8, to=at)
    return describe(asker, at, group, allowed=asker.version >= 3)


@DESCRIBE.question("when a topic is deleted", versions=(4,))
def described_of_a_deleted_topic(asker: Asker) -> list[Any]:
    """A group goes with its last position, and so does any that has none and no members."""
    side, topic, answers = asker.side, asker.topic(), []
    simple, nothing = asker.name("simple"), asker.name("nothing")
    at = {group: side.coordinator(group) for group in (simple, nothing)}
    side.ask(commit(simple, [(topic, 0, 1)]), 8, to=at[simple])
    answers.append(side.ask(join(nothing, protocols=[]), 3, to=at[nothing]))  # refused, but known
    answers += [describe(asker, to, group) for group, to in at.items()]
    asker.side.ask(delete_topics(topic), 5, to=side.controller())
    for group, to in at.items():
        side.until(lambda g=group, to=to: "Dead" in str(describe(asker, to, g)))  # type: ignore[misc]
    return answers


@DESCRIBE.question("not the coordinator")
def described_elsewhere(asker: Asker) -> Any:
    at = asker.side.coordinator(asker.name("elsewhere"))
    return describe(asker, at % 3 + 1, asker.name("elsewhere"))


@DELETE.question("with members, without, again")
def deleted(asker: Asker) -> Any:
    group = asker.name("deleted")
    at, member, generation = stable(asker.side, group)
    topic = filled(asker.side)
    known = commit(group, [(topic, 0, 3)], member=member, generation=generation)
    asker.side.ask(known, 8, to=at)
    request = DeleteGroupsRequest(groups_names=[group])
    answers = [asker.ask(request, to=at)]
    asker.side.ask(leave(group, member), 1, to=at)
    answers += [asker.ask(request, to=at), asker.ask(request, to=at)]
    answers.append(asker.side.ask(offset_fetch(7, (group, [(topic, [0])])), 7, to=at))
    answers.append(asker.side.ask(join(group, "gone"), 3, to=at))
    return answers


@DELETE.question("unknown, elsewhere")
def deleted_unknown(asker: Asker) -> Any:
    at = asker.side.coordinator("nobody")
    return [
        asker.ask(DeleteGroupsRequest(groups_names=["nobody"]), to=at),
        asker.ask(DeleteGroupsRequest(groups_names=["nobody"]), to=at % 3 + 1),
    ]


@DELETE.question("with offsets alone")
def deleted_simple(asker: Asker) -> Any:
    group, topic = asker.name("simple"), filled(asker.side)
    at = asker.side.coordinator(group)
    asker.side.ask(commit(group, [(topic, 0, 1)]), 8, to=at)
    answers = [asker.ask(DeleteGroupsRequest(groups_names=[group]), to=at)]
    return [*answers, asker.side.ask(offset_fetch(7, (group, [(topic, [0])])), 7, to=at)]


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
def forgotten(asker: Asker) -> Any:
    group, topic = asker.name("forget"), filled(asker.side)
    at = asker.side.coordinator(group)
    asker.side.ask(commit(group, [(topic, 0, 1), (topic, 1, 2)]), 8, to=at)
    answers = [asker.ask(forget(group, (topic, 0), ("never", 0)), to=at)]
    answers.append(asker.side.ask(offset_fetch(7, (group, [(topic, [0, 1])])), 7, to=at))
    answers.append(asker.ask(forget(group, (topic, 0)), to=at))
    return [*answers, asker.ask(forget(group), to=at)]


@FORGET.question("of a group's last position")
def forgotten_wholly(asker: Asker) -> Any:
    """With it the group goes, one that never had a member and one that was left."""
    answers, topic = [], filled(asker.side)
    for group in (asker.name("simple"), asker.name("left")):
        at = asker.side.coordinator(group)
        if "left" in group:
            at, member, generation = stable(asker.side, group)
            known = commit(group, [(topic, 1, 3)], member=member, generation=generation)
            asker.side.ask(known, 8, to=at)
            asker.side.ask(leave(group, member), 1, to=at)
        else:
            asker.side.ask(commit(group, [(topic, 1, 3)]), 8, to=at)
        answers += [asker.ask(forget(group, (topic, 1)), to=at) for _ in range(2)]
        answers.append(asker.side.ask(DescribeGroupsRequest(groups=[group]), 4, to=at))
        answers.append(asker.side.ask(DeleteGroupsRequest(groups_names=[group]), 1, to=at))
    return answers


@FORGET.question("of a group with members")
def forgotten_of_members(asker: Asker) -> Any:
    """The members' metadata names no topics that could be read."""
    group, topic = asker.name("members"), filled(asker.side)
    at, member, generation = stable(asker.side, group)
    known = commit(group, [(topic, 0, 3)], member=member, generation=generation)
    asker.side.ask(known, 8, to=at)
    return [asker.ask(forget(group, (topic, 0)), to=at)]


@FORGET.question("of an unknown group")
def forgotten_unknown(asker: Asker) -> Any:
    at = asker.side.coordinator("nobody")
    topic = filled(asker.side)
    return [asker.ask(forget("nobody", (topic, 0)), to=at)]
