"""Questions about consumer groups, to their coordinators."""

from __future__ import annotations

from kafka.protocol.admin import DeleteGroupsRequest, DescribeGroupsRequest, ListGroupsRequest
from kafka.protocol.consumer import OffsetDeleteRequest
from kafka.protocol.metadata import FindCoordinatorRequest

from urteil.harness.conformance.group_member import (
    encode_subscription,
    join_alone,
    join_in_parallel,
    member,
)
from urteil.harness.conformance.question import (
    GROUP,
    TRANSACTIONAL_ID,
    BrokerAnswer,
    Brokers,
    PreconditionFailed,
    Question,
    await_value,
    by_all,
    check,
    name_of,
    names,
)
from urteil.harness.conformance.records import create_led_topic
from urteil.harness.conformance.required_settings import (
    LEAST_SESSION_MS,
    MOST_MEMBERS,
    MOST_SESSION_MS,
)

NOTE_BYTES = 4_096
"""The default of `offset.metadata.max.bytes`."""


def _join_too_many(brokers: Brokers, name: str) -> BrokerAnswer:
    members = [member(brokers, name) for _ in range(MOST_MEMBERS + 1)]
    results = sorted(
        join.error_code for join in brokers.environment.run_all([member.join for member in members])
    )
    return members[0].node, names(results)


def _sync_in_old_generation(brokers: Brokers, name: str) -> BrokerAnswer:
    member = join_alone(brokers, name)
    before = member.generation
    member.join_or_fail()
    result = member.sync({member.id: b"older"}, generation=before)
    return member.node, name_of(result.error_code)


def _send_heartbeats(brokers: Brokers, name: str) -> BrokerAnswer:
    member = join_alone(brokers, name)
    results = [
        member.heartbeat(),
        member.heartbeat(member.generation - 1),
        member.heartbeat(member_id="nobody"),
    ]
    return member.node, names(results)


def _join_with_timeouts(brokers: Brokers, name: str) -> BrokerAnswer:
    requests = (LEAST_SESSION_MS - 1, MOST_SESSION_MS + 1)
    members = [member(brokers, name, session_ms=session_ms) for session_ms in requests]
    return members[0].node, names(member.join().error_code for member in members)


def _join_incompatible(brokers: Brokers, name: str) -> BrokerAnswer:
    node = join_alone(brokers, name).node
    others = [
        member(brokers, name, kind="connect"),
        member(brokers, name, protocols={"unheard of": b""}),
    ]
    return node, names(member.join().error_code for member in others)


def _select_protocol(brokers: Brokers, name: str) -> BrokerAnswer:
    members = [
        member(brokers, name, protocols={f"own {number}": b"", "common": b""})
        for number in range(2)
    ]
    result = join_in_parallel(members)
    return members[0].node, ", ".join(str(join.protocol_name) for join in result)


def _leave_together(brokers: Brokers, name: str) -> BrokerAnswer:
    members = [member(brokers, name) for _ in range(2)]
    join_in_parallel(members)
    result = names(members[0].leave(members[1]))
    return members[0].node, f"{result}, then {describe_group(brokers, name)}"


def describe_group(brokers: Brokers, group: str) -> str:
    """State, protocol and assignments of a group by DescribeGroups."""
    request = DescribeGroupsRequest[4](groups=[group])
    (result,) = brokers.send(brokers.coordinator(group), request).groups
    members = [bytes(member.member_assignment).decode() for member in result.members]
    return f"{result.group_state} {result.protocol_data or '-'} {members}"


def _describe_question(brokers: Brokers, name: str) -> BrokerAnswer:
    return join_alone(brokers, name).node, describe_group(brokers, name)


def _list_groups(brokers: Brokers, name: str) -> BrokerAnswer:
    node = join_alone(brokers, name).node
    response = brokers.send(node, ListGroupsRequest[4](states_filter=[])).groups
    results = [
        f"{group.protocol_type} {group.group_state}" for group in response if group.group_id == name
    ]
    return node, ", ".join(results)


def _delete_group(brokers: Brokers, name: str) -> BrokerAnswer:
    node = join_alone(brokers, name).node
    (result,) = brokers.send(node, DeleteGroupsRequest[1](groups_names=[name])).results
    return node, f"{name_of(result.error_code)}, {describe_group(brokers, name)}"


def _delete_subscribed(brokers: Brokers, name: str) -> BrokerAnswer:
    brokers.create(name, [[brokers.nodes[0]]])
    member = join_alone(brokers, name, protocols={"range": encode_subscription(name)})
    check("OffsetCommit", member.commit(name, {0: 7})[0])
    kinds = OffsetDeleteRequest.OffsetDeleteRequestTopic
    request = kinds(name=name, partitions=[kinds.OffsetDeleteRequestPartition(partition_index=0)])
    response = member.send(OffsetDeleteRequest[0](group_id=name, topics=[request]))
    check("OffsetDelete", response.error_code)
    return (
        member.node,
        f"{name_of(response.topics[0].partitions[0].error_code)}, {member.positions()}",
    )


def _join_by_id(brokers: Brokers, name: str) -> BrokerAnswer:
    joiner = member(brokers, name)
    first = joiner.join(version=4)
    stranger = member(brokers, name, id="nobody")
    errors = [first.error_code, stranger.join(version=4).error_code]
    joiner.id = first.member_id
    return joiner.node, names([*errors, joiner.join(version=4).error_code])


def _find_coordinators(brokers: Brokers, name: str) -> BrokerAnswer:
    def observe(node: int) -> str:
        requests = [
            FindCoordinatorRequest[2](key=name, key_type=kind) for kind in (GROUP, TRANSACTIONAL_ID)
        ]
        results = [brokers.send(node, request).node_id for request in requests]
        places = [_leader_of_key(brokers, name, topic) for topic in ("offsets", "transactions")]
        return "who leads there" if results == places else f"{results} where {places} lead"

    return by_all(brokers, observe, "who leads there")


def _leader_of_key(brokers: Brokers, key: str, what: str) -> int:
    topic = {"offsets": "__consumer_offsets", "transactions": "__transaction_state"}[what]
    number, _ = partition_of(brokers, key, topic)
    partitions = brokers.metadata(brokers.nodes[0], topic).partitions
    return next(
        int(partition.leader_id) for partition in partitions if partition.partition_index == number
    )


def partition_of(brokers: Brokers, key: str, topic: str) -> tuple[int, list[int]]:
    """The partition of an internal topic that holds a group or a transactional id, and its
    replicas."""
    partitions = brokers.metadata(brokers.nodes[0], topic).partitions
    if not partitions:
        raise PreconditionFailed(f"{topic} is not there yet")
    hashed = 0
    for letter in key:
        hashed = (31 * hashed + ord(letter)) & 0xFFFFFFFF
    index = (hashed & 0x7FFFFFFF) % len(partitions)
    return next((index, list(p.replica_nodes)) for p in partitions if p.partition_index == index)


def _leave_as_leader(brokers: Brokers, name: str) -> BrokerAnswer:
    members = [member(brokers, name) for _ in range(2)]
    (leader,) = {join.leader for join in join_in_parallel(members)}
    first, second = sorted(members, key=lambda member: member.id != leader)
    brokers.environment.run_all([lambda: first.sync({second.id: b"x"}), lambda: second.sync({})])
    check("LeaveGroup", first.leave()[0])
    result = name_of(second.heartbeat())
    after = second.join_or_fail()
    return first.node, f"{result}, {'leads' if after.leader == second.id else after.leader}"


def _notice_newcomer(brokers: Brokers, name: str) -> BrokerAnswer:
    """A heartbeat reports that another member wants to join."""
    joined, other = join_alone(brokers, name), member(brokers, name)
    before = joined.generation

    def await_rebalance() -> str:
        text = await_value(brokers, lambda: name_of(joined.heartbeat()), "RebalanceInProgress")
        joined.join_or_fail()
        return text

    _, result = brokers.environment.run_all([other.join_or_fail, await_rebalance])
    return joined.node, f"{result}, {joined.generation - before} later"


def _commit_metadata(brokers: Brokers, name: str) -> BrokerAnswer:
    brokers.create(name, [[brokers.nodes[0]]] * 2)
    committer = member(brokers, name)
    result = committer.commit(name, {0: 1}, "x" * (NOTE_BYTES + 1))
    check("OffsetCommit", committer.commit(name, {0: 17, 1: 18}, "kept")[0])
    return committer.node, f"{names(result)}, {committer.positions()}"


def _replace_static_member(brokers: Brokers, name: str) -> BrokerAnswer:
    first = join_alone(brokers, name, instance="same")
    other = member(brokers, name, instance="same")
    other.join_or_fail()
    return first.node, names([first.heartbeat(), other.heartbeat()])


def _leave_by_instance(brokers: Brokers, name: str) -> BrokerAnswer:
    """An administrator removes a static member by its instance id, without its member id
    (KIP-345)."""
    member = join_alone(brokers, name, instance="same")
    member.id = ""
    result = names(member.leave())
    return member.node, f"{result}, then {describe_group(brokers, name)}"


def _commit_unknown_partition(brokers: Brokers, name: str) -> BrokerAnswer:
    brokers.create(name, [[brokers.nodes[0]]])
    committer = member(brokers, name)
    result = committer.commit(name, {0: 3, 9: 4})
    return committer.node, f"{names(result)}, {committer.positions()}"


def _commit_as_others(brokers: Brokers, name: str) -> BrokerAnswer:
    """Only a member in the current generation can commit."""
    create_led_topic(brokers, name)
    joined = join_alone(brokers, name)
    strangers = [
        member(brokers, name, id=joined.id, generation=joined.generation - 1),
        member(brokers, name, id="nobody", generation=joined.generation),
        member(brokers, name),
        joined,
    ]
    results = [client.commit(name, {0: at})[0] for at, client in enumerate(strangers)]
    return joined.node, f"{names(results)}, {joined.positions()}"


def _join_nameless_group(brokers: Brokers, name: str) -> BrokerAnswer:
    nameless = member(brokers, name)
    nameless.group = ""
    return nameless.node, name_of(nameless.join().error_code)


GROUPS = (
    Question(
        about=f"{MOST_MEMBERS + 1} members join a group in parallel, with group.max.size "
        f"{MOST_MEMBERS}",
        answer=names([0] * MOST_MEMBERS + [81]),
        ask=_join_too_many,
    ),
    Question(
        about="SyncGroup in an older generation",
        answer="IllegalGeneration",
        ask=_sync_in_old_generation,
    ),
    Question(
        about="heartbeats of a member, in an older generation, of an unknown member",
        answer="No, IllegalGeneration, UnknownMemberId",
        ask=_send_heartbeats,
    ),
    Question(
        about="session timeouts that are too short, and too long",
        answer="InvalidSessionTimeout, InvalidSessionTimeout",
        ask=_join_with_timeouts,
    ),
    Question(
        about="a member with another protocol type, and one without a common assignor",
        answer="InconsistentGroupProtocol, InconsistentGroupProtocol",
        ask=_join_incompatible,
    ),
    Question(
        about="the protocol of a group whose members have different ones and a common one",
        answer="common, common",
        ask=_select_protocol,
    ),
    Question(
        about="two members leave in one request",
        answer="No, No, then Empty - []",
        ask=_leave_together,
    ),
    Question(about="DescribeGroups", answer="Stable range ['all']", ask=_describe_question),
    Question(about="ListGroups", answer="consumer Stable", ask=_list_groups),
    Question(
        about="DeleteGroups of a group with members",
        answer="NonEmptyGroup, Stable range ['all']",
        ask=_delete_group,
    ),
    Question(
        about="OffsetDelete of a subscribed topic",
        answer="GroupSubscribedToTopic, 0:7",
        ask=_delete_subscribed,
    ),
    Question(
        about="JoinGroup without a member id, with an unknown one, with the assigned one",
        answer="MemberIdRequired, UnknownMemberId, No",
        ask=_join_by_id,
    ),
    Question(
        about="the coordinators of a group and a transactional id",
        answer="who leads there",
        ask=_find_coordinators,
    ),
    Question(
        about="a group of two members whose leader leaves",
        answer="RebalanceInProgress, leads",
        ask=_leave_as_leader,
    ),
    Question(
        about="a member's heartbeat while another one joins",
        answer="RebalanceInProgress, 1 later",
        ask=_notice_newcomer,
    ),
    Question(
        about="commits with metadata that is too long, and with short metadata",
        answer="OffsetMetadataTooLarge, 0:17kept 1:18kept",
        ask=_commit_metadata,
    ),
    Question(
        about="heartbeats of a replaced static member, and of its successor",
        answer="FencedInstanceId, No",
        ask=_replace_static_member,
    ),
    Question(
        about="LeaveGroup of a static member by its instance id",
        answer="No, then Empty - []",
        ask=_leave_by_instance,
    ),
    Question(
        about="commits for an existing partition and a missing one",
        answer="No, UnknownTopicOrPartition, 0:3",
        ask=_commit_unknown_partition,
    ),
    Question(
        about="commits of a member in an older generation, of an unknown one, of "
        "none, and of a member",
        answer="IllegalGeneration, UnknownMemberId, UnknownMemberId, No, 0:3",
        ask=_commit_as_others,
    ),
    Question(
        about="JoinGroup with an empty group id", answer="InvalidGroupId", ask=_join_nameless_group
    ),
)
