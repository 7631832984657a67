"""Questions about consumer groups, to their coordinators."""

from __future__ import annotations

from kafka.protocol.admin import DeleteGroupsRequest, DescribeGroupsRequest, ListGroupsRequest
from kafka.protocol.consumer import OffsetDeleteRequest
from kafka.protocol.metadata import FindCoordinatorRequest

from urteil.harness.conformance.group_member import alone, member, pair, subscription
from urteil.harness.conformance.question import (
    OF_GROUP,
    OF_TRANSACTIONS,
    Brokers,
    PreconditionFailed,
    Question,
    awaited,
    by_all,
    check,
    name_of,
    names,
    together,
)
from urteil.harness.conformance.records import led
from urteil.harness.conformance.required_settings import (
    LEAST_SESSION_MS,
    MOST_MEMBERS,
    MOST_SESSION_MS,
)

Told = tuple[int, str]
NOTE_BYTES = 4_096
"""`offset.metadata.max.bytes`, as nobody set it."""


def _too_many(brokers: Brokers, name: str) -> Told:
    members = [member(brokers, name) for _ in range(MOST_MEMBERS + 1)]
    told = sorted(one.error_code for one in together([one.join for one in members]))
    return members[0].node, names(told)


def _sync_in_old_generation(brokers: Brokers, name: str) -> Told:
    one = alone(brokers, name)
    before = one.generation
    one.joined()
    told = one.sync({one.id: b"older"}, generation=before)
    return one.node, name_of(told.error_code)


def _heartbeats(brokers: Brokers, name: str) -> Told:
    one = alone(brokers, name)
    told = [one.heartbeat(), one.heartbeat(one.generation - 1), one.heartbeat(member_id="nobody")]
    return one.node, names(told)


def _sessions(brokers: Brokers, name: str) -> Told:
    asked = (LEAST_SESSION_MS - 1, MOST_SESSION_MS + 1)
    members = [member(brokers, name, session_ms=session_ms) for session_ms in asked]
    return members[0].node, names(one.join().error_code for one in members)


def _others(brokers: Brokers, name: str) -> Told:
    node = alone(brokers, name).node
    others = [
        member(brokers, name, kind="connect"),
        member(brokers, name, protocols={"unheard of": b""}),
    ]
    return node, names(one.join().error_code for one in others)


def _common_protocol(brokers: Brokers, name: str) -> Told:
    members = [
        member(brokers, name, protocols={f"own {number}": b"", "common": b""})
        for number in range(2)
    ]
    told = pair(members)
    return members[0].node, ", ".join(str(one.protocol_name) for one in told)


def _leave_together(brokers: Brokers, name: str) -> Told:
    members = [member(brokers, name) for _ in range(2)]
    pair(members)
    told = names(members[0].leave(members[1]))
    return members[0].node, f"{told}, then {described(brokers, name)}"


def described(brokers: Brokers, group: str) -> str:
    """State, protocol and assignments of a group, as its coordinator tells them."""
    asked = DescribeGroupsRequest[4](groups=[group])
    (told,) = brokers.ask(brokers.coordinator(group), asked).groups
    members = [bytes(one.member_assignment).decode() for one in told.members]
    return f"{told.group_state} {told.protocol_data or '-'} {members}"


def _describe(brokers: Brokers, name: str) -> Told:
    return alone(brokers, name).node, described(brokers, name)


def _list(brokers: Brokers, name: str) -> Told:
    node = alone(brokers, name).node
    told = brokers.ask(node, ListGroupsRequest[4](states_filter=[])).groups
    found = [f"{one.protocol_type} {one.group_state}" for one in told if one.group_id == name]
    return node, ", ".join(found)


def _delete(brokers: Brokers, name: str) -> Told:
    node = alone(brokers, name).node
    (told,) = brokers.ask(node, DeleteGroupsRequest[1](groups_names=[name])).results
    return node, f"{name_of(told.error_code)}, {described(brokers, name)}"


def _delete_subscribed(brokers: Brokers, name: str) -> Told:
    brokers.create(name, [[brokers.nodes[0]]])
    one = alone(brokers, name, protocols={"range": subscription(name)})
    check("OffsetCommit", one.commit(name, {0: 7})[0])
    kinds = OffsetDeleteRequest.OffsetDeleteRequestTopic
    asked = kinds(name=name, partitions=[kinds.OffsetDeleteRequestPartition(partition_index=0)])
    told = one.ask(OffsetDeleteRequest[0](group_id=name, topics=[asked]))
    check("OffsetDelete", told.error_code)
    return one.node, f"{name_of(told.topics[0].partitions[0].error_code)}, {one.positions()}"


def _id_first(brokers: Brokers, name: str) -> Told:
    one = member(brokers, name)
    first = one.join(version=4)
    stranger = member(brokers, name, id="nobody")
    told = [first.error_code, stranger.join(version=4).error_code]
    one.id = first.member_id
    return one.node, names([*told, one.join(version=4).error_code])


def _coordinators(brokers: Brokers, name: str) -> Told:
    def told(node: int) -> str:
        asked = [
            FindCoordinatorRequest[2](key=name, key_type=kind)
            for kind in (OF_GROUP, OF_TRANSACTIONS)
        ]
        found = [brokers.ask(node, one).node_id for one in asked]
        places = [_place(brokers, name, topic) for topic in ("offsets", "transactions")]
        return "who leads there" if found == places else f"{found} where {places} lead"

    return by_all(brokers, told, "who leads there")


def _place(brokers: Brokers, key: str, what: str) -> int:
    topic = {"offsets": "__consumer_offsets", "transactions": "__transaction_state"}[what]
    number, _ = partition_of(brokers, key, topic)
    partitions = brokers.metadata(brokers.nodes[0], topic).partitions
    return next(int(one.leader_id) for one in partitions if one.partition_index == number)


def partition_of(brokers: Brokers, key: str, topic: str) -> tuple[int, list[int]]:
    """Where an internal topic has what is about a group or transactional id, and its replicas."""
    partitions = brokers.metadata(brokers.nodes[0], topic).partitions
    if not partitions:
        raise PreconditionFailed(f"{topic} is not there yet")
    hashed = 0
    for letter in key:
        hashed = (31 * hashed + ord(letter)) & 0xFFFFFFFF
    wanted = (hashed & 0x7FFFFFFF) % len(partitions)
    return next((wanted, list(p.replica_nodes)) for p in partitions if p.partition_index == wanted)


def _leader_leaves(brokers: Brokers, name: str) -> Told:
    members = [member(brokers, name) for _ in range(2)]
    (leader,) = {one.leader for one in pair(members)}
    first, second = sorted(members, key=lambda one: one.id != leader)
    together([lambda: first.sync({second.id: b"x"}), lambda: second.sync({})])
    check("LeaveGroup", first.leave()[0])
    told = name_of(second.heartbeat())
    after = second.joined()
    return first.node, f"{told}, {'leads' if after.leader == second.id else after.leader}"


def _newcomer(brokers: Brokers, name: str) -> Told:
    """A member is told by its heartbeat that somebody wants to join."""
    one, other = alone(brokers, name), member(brokers, name)
    before = one.generation

    def hear() -> str:
        told = awaited(lambda: name_of(one.heartbeat()), "RebalanceInProgress")
        one.joined()
        return told

    _, told = together([other.joined, hear])
    return one.node, f"{told}, {one.generation - before} later"


def _notes(brokers: Brokers, name: str) -> Told:
    brokers.create(name, [[brokers.nodes[0]]] * 2)
    one = member(brokers, name)
    told = one.commit(name, {0: 1}, "x" * (NOTE_BYTES + 1))
    check("OffsetCommit", one.commit(name, {0: 17, 1: 18}, "kept")[0])
    return one.node, f"{names(told)}, {one.positions()}"


def _replaced(brokers: Brokers, name: str) -> Told:
    one = alone(brokers, name, instance="same")
    other = member(brokers, name, instance="same")
    other.joined()
    return one.node, names([one.heartbeat(), other.heartbeat()])


def _leave_by_instance(brokers: Brokers, name: str) -> Told:
    """As an administrator has a static member leave, whose id nobody knows (KIP-345)."""
    one = alone(brokers, name, instance="same")
    one.id = ""
    told = names(one.leave())
    return one.node, f"{told}, then {described(brokers, name)}"


def _one_place_unknown(brokers: Brokers, name: str) -> Told:
    brokers.create(name, [[brokers.nodes[0]]])
    one = member(brokers, name)
    told = one.commit(name, {0: 3, 9: 4})
    return one.node, f"{names(told)}, {one.positions()}"


def _commits_of_others(brokers: Brokers, name: str) -> Told:
    """Positions move by who is a member, in this generation, and by nobody else."""
    led(brokers, name)
    one = alone(brokers, name)
    strangers = [
        member(brokers, name, id=one.id, generation=one.generation - 1),
        member(brokers, name, id="nobody", generation=one.generation),
        member(brokers, name),
        one,
    ]
    told = [who.commit(name, {0: at})[0] for at, who in enumerate(strangers)]
    return one.node, f"{names(told)}, {one.positions()}"


def _nameless(brokers: Brokers, name: str) -> Told:
    one = member(brokers, name)
    one.group = ""
    return one.node, name_of(one.join().error_code)


GROUPS = (
    Question(
        about=f"{MOST_MEMBERS + 1} members join a group at once, whose group.max.size is "
        f"{MOST_MEMBERS}",
        answer=names([0] * MOST_MEMBERS + [81]),
        ask=_too_many,
    ),
    Question(
        about="SyncGroup in a generation that is over",
        answer="IllegalGeneration",
        ask=_sync_in_old_generation,
    ),
    Question(
        about="heartbeats: of a member, in a generation that is over, of nobody",
        answer="No, IllegalGeneration, UnknownMemberId",
        ask=_heartbeats,
    ),
    Question(
        about="sessions that are too short, and too long",
        answer="InvalidSessionTimeout, InvalidSessionTimeout",
        ask=_sessions,
    ),
    Question(
        about="a member of another protocol type, and one whose assignor nobody has",
        answer="InconsistentGroupProtocol, InconsistentGroupProtocol",
        ask=_others,
    ),
    Question(
        about="which protocol a group has of which members want different ones, and one is common",
        answer="common, common",
        ask=_common_protocol,
    ),
    Question(
        about="two members leave by one request",
        answer="No, No, then Empty - []",
        ask=_leave_together,
    ),
    Question(about="DescribeGroups", answer="Stable range ['all']", ask=_describe),
    Question(about="ListGroups", answer="consumer Stable", ask=_list),
    Question(
        about="DeleteGroups of one with members",
        answer="NonEmptyGroup, Stable range ['all']",
        ask=_delete,
    ),
    Question(
        about="OffsetDelete of a topic that members read",
        answer="GroupSubscribedToTopic, 0:7",
        ask=_delete_subscribed,
    ),
    Question(
        about="JoinGroup without an id, with a strange one, with the one that was told",
        answer="MemberIdRequired, UnknownMemberId, No",
        ask=_id_first,
    ),
    Question(
        about="who coordinates a group, and a transactional id",
        answer="who leads there",
        ask=_coordinators,
    ),
    Question(
        about="what is left of two members whose leader leaves",
        answer="RebalanceInProgress, leads",
        ask=_leader_leaves,
    ),
    Question(
        about="what a member hears when somebody wants to join",
        answer="RebalanceInProgress, 1 later",
        ask=_newcomer,
    ),
    Question(
        about="positions with a text that is too long, and with one that is not",
        answer="OffsetMetadataTooLarge, 0:17kept 1:18kept",
        ask=_notes,
    ),
    Question(
        about="heartbeats of a static member that was replaced, and of its successor",
        answer="FencedInstanceId, No",
        ask=_replaced,
    ),
    Question(
        about="a static member that is told to leave by its instance",
        answer="No, then Empty - []",
        ask=_leave_by_instance,
    ),
    Question(
        about="positions of a partition that there is, and one that there is not",
        answer="No, UnknownTopicOrPartition, 0:3",
        ask=_one_place_unknown,
    ),
    Question(
        about="positions by a member in an old generation, a strange one, none, and a member",
        answer="IllegalGeneration, UnknownMemberId, UnknownMemberId, No, 0:3",
        ask=_commits_of_others,
    ),
    Question(about="JoinGroup of a group without a name", answer="InvalidGroupId", ask=_nameless),
)
