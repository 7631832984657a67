"""FindCoordinator, JoinGroup, SyncGroup, Heartbeat, LeaveGroup, OffsetCommit, OffsetFetch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.conformance.conftest import Pair
from tests.conformance.side import CLOSED, Side
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import (
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
)

SESSION_MS = 6_000
Protocol = JoinGroupRequest.JoinGroupRequestProtocol
Identity = LeaveGroupRequest.MemberIdentity


@pytest.fixture(scope="module")
def topic(pair: Pair) -> str:
    name = pair.name("committed")
    pair.both(lambda side: side.create(name, [(1, 2), (2, 3)]))
    return name


# -- finding ------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(7))
@pytest.mark.parametrize("kind", [0, 2, -1])
def test_find_coordinator(pair: Pair, version: int, kind: int) -> None:
    if version == 0 and kind:
        return
    pair.both(lambda side: side.coordinator("any"))
    request = FindCoordinatorRequest(
        key="a group", key_type=kind, coordinator_keys=["a group", "another", ""]
    )
    pair.same(lambda side: side.ask(request, version))


@pytest.mark.parametrize("version", [0, 3, 4, 6])
def test_find_the_coordinator_of_nothing(pair: Pair, version: int) -> None:
    pair.same(lambda side: side.ask(FindCoordinatorRequest(key="", coordinator_keys=[]), version))


# -- one member ---------------------------------------------------------------------------------


def join(group: str, member: str = "", **more: Any) -> JoinGroupRequest:
    given = {
        "session_timeout_ms": SESSION_MS,
        "rebalance_timeout_ms": 5_000,
        "protocol_type": "consumer",
        "protocols": [Protocol(name="range", metadata=b"r"), Protocol(name="other", metadata=b"o")],
        **more,
    }
    return JoinGroupRequest(group_id=group, member_id=member, **given)


def member_of(
    side: Side, group: str, version: int = 5, *, instance: str | None = None, to: int | None = None
) -> tuple[str, int]:
    """Join alone, through MEMBER_ID_REQUIRED where it comes: the member id and generation."""
    at = to or side.coordinator(group)
    answer = side.get(join(group, group_instance_id=instance), version, to=at)
    if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
        answer = side.get(join(group, answer.member_id), version, to=at)
    assert answer.error_code == ErrorCode.NONE, answer
    side.names[answer.member_id] = f"the member of {group}"
    return answer.member_id, answer.generation_id


def stable(side: Side, group: str, *, instance: str | None = None) -> tuple[int, str, int]:
    """A group of one member that is stable: coordinator, member id, generation."""
    at = side.coordinator(group)
    member, generation = member_of(side, group, instance=instance, to=at)
    one = SyncGroupRequest.SyncGroupRequestAssignment(member_id=member, assignment=b"all")
    request = SyncGroupRequest(
        group_id=group,
        generation_id=generation,
        member_id=member,
        group_instance_id=instance,
        assignments=[one],
    )
    assert side.get(request, 3, to=at).error_code == ErrorCode.NONE
    return at, member, generation


def hide_ids(side: Side, answer: Any) -> Any:
    """New member ids have a random end."""
    if answer != CLOSED:
        for holder, name in [(answer, "member_id"), (answer, "leader")]:
            if holder.get(name):
                holder[name] = holder[name][:-36] + "..."
        for one in answer["members"]:
            one["member_id"] = one["member_id"][:-36] + "..."
    return answer


@pytest.mark.parametrize("version", range(10))
def test_a_life_of_a_member(pair: Pair, version: int) -> None:
    """Join, sync, beat, leave, each in the version of about the same age."""
    group = pair.name("life")

    def question(side: Side) -> list[Any]:
        at = side.coordinator(group)
        seen = []
        answer = side.get(join(group), version, to=at, client="cli")
        seen.append(hide_ids(side, side.plain(answer)))
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            answer = side.get(join(group, answer.member_id), version, to=at, client="cli")
            seen.append(hide_ids(side, side.plain(answer)))
        member, generation = answer.member_id, answer.generation_id
        assignment = SyncGroupRequest.SyncGroupRequestAssignment(
            member_id=member, assignment=b"mine"
        )
        sync = SyncGroupRequest(
            group_id=group,
            generation_id=generation,
            member_id=member,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[assignment],
        )
        seen.append(side.ask(sync, min(version, 5), to=at))
        seen.append(side.ask(sync, min(version, 5), to=at))
        beat = HeartbeatRequest(group_id=group, generation_id=generation, member_id=member)
        seen.append(side.ask(beat, min(version, 4), to=at))
        again = side.get(join(group, member), version, to=at, client="cli")
        seen.append(hide_ids(side, side.plain(again)))
        seen.append(side.ask(beat, min(version, 4), to=at))
        side.names[member] = "the member"
        leave = LeaveGroupRequest(
            group_id=group, member_id=member, members=[Identity(member_id=member)]
        )
        seen.append(side.ask(leave, min(version, 5), to=at))
        seen.append(side.ask(leave, min(version, 5), to=at))
        seen.append(side.ask(beat, min(version, 4), to=at))
        return seen

    pair.same(question)


ODD_JOINS: dict[str, dict[str, Any]] = {
    "session too short": {"session_timeout_ms": 10},
    "session too long": {"session_timeout_ms": 10_000_000},
    "session below zero": {"session_timeout_ms": -1},
    "unknown member": {"member": "nobody"},
    "no protocols": {"protocols": []},
    "no protocol type": {"protocol_type": ""},
    "no type and no protocols": {"protocols": [], "protocol_type": ""},
    "empty group": {"group": ""},
    "unknown member with instance": {"member": "nobody", "group_instance_id": "i"},
    "bad instance": {"group_instance_id": "a b"},
    "empty instance": {"group_instance_id": ""},
    "dots": {"group_instance_id": ".."},
}


@pytest.mark.parametrize("what", ODD_JOINS)
@pytest.mark.parametrize("version", [0, 3, 4, 5, 9])
def test_odd_joins(pair: Pair, what: str, version: int) -> None:
    more = dict(ODD_JOINS[what])
    group = more.pop("group", pair.name("odd"))
    member = more.pop("member", "")

    def question(side: Side) -> Any:
        at = side.coordinator(group or "x")
        return hide_ids(side, side.ask(join(group, member, **more), version, to=at))

    pair.same(question)


def test_a_protocol_that_does_not_fit(pair: Pair) -> None:
    group = pair.name("fit")

    def question(side: Side) -> list[Any]:
        at, _, _ = stable(side, group)
        strange = [Protocol(name="strange", metadata=b"")]
        return [
            side.ask(join(group, protocols=strange), 2, to=at),
            side.ask(join(group, protocol_type="connect"), 2, to=at),
            side.ask(join(group, protocols=strange), 5, to=at)["error_code"],
        ]

    pair.same(question)


Wrong = Callable[[str, str, int], Any]


def _sync(group: str, member: str, generation: int, **more: Any) -> SyncGroupRequest:
    given = {"protocol_type": "consumer", "protocol_name": "range", **more}
    return SyncGroupRequest(group_id=group, generation_id=generation, member_id=member, **given)


def _beat(group: str, member: str, generation: int, **more: Any) -> HeartbeatRequest:
    return HeartbeatRequest(group_id=group, generation_id=generation, member_id=member, **more)


WRONG: dict[str, Wrong] = {
    "sync, old generation": lambda g, m, n: (_sync(g, m, n - 1), 5),
    "sync, later generation": lambda g, m, n: (_sync(g, m, n + 1), 5),
    "sync, unknown member": lambda g, m, n: (_sync(g, "nobody", n), 5),
    "sync, empty member": lambda g, m, n: (_sync(g, "", n), 5),
    "sync, unknown group": lambda g, m, n: (_sync(g + "x", m, n), 5),
    "sync, empty group": lambda g, m, n: (_sync("", m, n), 5),
    "sync, other protocol": lambda g, m, n: (_sync(g, m, n, protocol_name="other"), 5),
    "sync, other type": lambda g, m, n: (_sync(g, m, n, protocol_type="connect"), 5),
    "sync, null protocol": lambda g, m, n: (_sync(g, m, n, protocol_name=None), 5),
    "sync, null type": lambda g, m, n: (_sync(g, m, n, protocol_type=None), 5),
    "sync, wrong instance": lambda g, m, n: (_sync(g, m, n, group_instance_id="i"), 5),
    "beat, old generation": lambda g, m, n: (_beat(g, m, n - 1), 4),
    "beat, later generation": lambda g, m, n: (_beat(g, m, n + 1), 4),
    "beat, generation -1": lambda g, m, n: (_beat(g, m, -1), 4),
    "beat, unknown member": lambda g, m, n: (_beat(g, "nobody", n), 4),
    "beat, empty member": lambda g, m, n: (_beat(g, "", n), 4),
    "beat, unknown group": lambda g, m, n: (_beat(g + "x", m, n), 4),
    "beat, empty group": lambda g, m, n: (_beat("", m, n), 4),
    "beat, wrong instance": lambda g, m, n: (_beat(g, m, n, group_instance_id="i"), 4),
    "leave, unknown member": lambda g, m, n: (
        LeaveGroupRequest(group_id=g, members=[Identity(member_id="nobody")]), 5
    ),
    "leave, two": lambda g, m, n: (
        LeaveGroupRequest(
            group_id=g,
            members=[Identity(member_id="nobody"), Identity(member_id="", group_instance_id="i")],
        ),
        5,
    ),
    "leave, unknown group": lambda g, m, n: (
        LeaveGroupRequest(group_id=g + "x", members=[Identity(member_id=m)]), 5
    ),
    "leave, empty group": lambda g, m, n: (
        LeaveGroupRequest(group_id="", members=[Identity(member_id=m)]), 5
    ),
    "leave, nobody": lambda g, m, n: (LeaveGroupRequest(group_id=g, members=[]), 5),
    "leave, old version, unknown": lambda g, m, n: (
        LeaveGroupRequest(group_id=g, member_id="nobody"), 1
    ),
    "leave, old version, unknown group": lambda g, m, n: (
        LeaveGroupRequest(group_id=g + "x", member_id=m), 2
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_wrong_in_a_stable_group(pair: Pair, what: str) -> None:
    group = pair.name("wrong")

    def question(side: Side) -> Any:
        at, member, generation = stable(side, group)
        request, version = WRONG[what](group, member, generation)
        # another name's coordinator may be another broker: all brokers are asked
        answers = [side.ask(request, version, to=broker) for broker in (1, 2, 3)]
        return answers[at - 1] if request.group_id == group else sorted(map(str, answers))

    pair.same(question)


def test_not_the_coordinator(pair: Pair, topic: str) -> None:
    group = pair.name("elsewhere")

    def question(side: Side) -> list[Any]:
        other = side.coordinator(group) % 3 + 1
        requests = [
            (join(group), 5),
            (_sync(group, "m", 1), 5),
            (_beat(group, "m", 1), 4),
            (LeaveGroupRequest(group_id=group, members=[Identity(member_id="m")]), 5),
            (LeaveGroupRequest(group_id=group, member_id="m"), 2),
            (commit(group, [(topic, 0, 5)]), 8),
            (fetch_one(group, [(topic, [0])]), 5),
            (fetch_many([(group, [(topic, [0])])]), 8),
        ]
        return [side.ask(request, version, to=other) for request, version in requests]

    pair.same(question)


# -- several members ----------------------------------------------------------------------------


def test_two_members_rebalance(pair: Pair) -> None:
    """A second member makes the first rejoin; the leader gets both subscriptions."""
    group = pair.name("two")

    def question(side: Side) -> list[Any]:
        at, first, generation = stable(side, group)
        entry = side.get(join(group), 4, to=at)
        second = entry.member_id
        side.names.update({first: "first", second: "second"})
        waiting = side.start(join(group, second), 4, to=at)
        beat = _beat(group, first, generation)
        side.until(lambda: side.get(beat, 3, to=at).error_code != ErrorCode.NONE)
        seen = [side.ask(beat, 3, to=at), side.ask(_sync(group, first, generation), 3, to=at)]
        mine = side.get(join(group, first), 4, to=at)
        theirs = waiting.answer()
        answers = [side.plain(mine), side.plain(theirs)]
        for one in answers:
            one["members"].sort(key=lambda member: member["member_id"])
        seen += answers
        early = side.start(_sync(group, second, generation + 1), 3, to=at)
        assignment = SyncGroupRequest.SyncGroupRequestAssignment
        given = [assignment(member_id=first, assignment=b"1"), assignment(member_id=second)]
        seen.append(side.ask(_sync(group, first, generation + 1, assignments=given), 3, to=at))
        seen.append(side.plain(early.answer()))
        seen.append(side.ask(_beat(group, second, generation + 1), 3, to=at))
        seen.append(side.ask(_beat(group, second, generation), 3, to=at))
        leave = LeaveGroupRequest(group_id=group, members=[Identity(member_id=second)])
        seen.append(side.ask(leave, 3, to=at))
        seen.append(side.ask(_beat(group, first, generation + 1), 3, to=at))
        last = side.get(join(group, first), 4, to=at)
        seen.append(side.plain(last))
        return seen

    pair.same(question)


def test_a_static_member_comes_back(pair: Pair) -> None:
    """The same instance with a new member id takes the old one's place (KIP-345)."""
    group = pair.name("static")

    def question(side: Side) -> list[Any]:
        at, old, generation = stable(side, group, instance="box-1")
        answer = side.get(join(group, group_instance_id="box-1"), 5, to=at)
        new = answer.member_id
        assert new != old
        side.names.update({old: "old", new: "new"})
        seen = [side.plain(answer)]
        beat = {"group_instance_id": "box-1"}
        seen.append(side.ask(_beat(group, new, generation, **beat), 3, to=at))
        seen.append(side.ask(_beat(group, old, generation, **beat), 3, to=at))
        seen.append(side.ask(_sync(group, old, generation, **beat), 3, to=at))
        seen.append(side.ask(_sync(group, new, generation, **beat), 3, to=at))
        seen.append(side.ask(join(group, old, group_instance_id="box-1"), 5, to=at))
        by_name = Identity(member_id="", group_instance_id="box-1")
        seen.append(side.ask(LeaveGroupRequest(group_id=group, members=[by_name]), 3, to=at))
        seen.append(side.ask(_beat(group, new, generation, **beat), 3, to=at))
        return seen

    pair.same(question)


@pytest.mark.parametrize("version", [5, 8, 9])
def test_a_static_leader_comes_back(pair: Pair, version: int) -> None:
    """It keeps generation and leadership when its subscription is the same (KIP-814)."""
    group = pair.name("leader")

    def question(side: Side) -> Any:
        at, old, _ = stable(side, group, instance="box-1")
        answer = side.get(join(group, group_instance_id="box-1"), version, to=at)
        side.names.update({old: "old", answer.member_id: "new"})
        return side.plain(answer)

    pair.same(question)


def test_a_member_that_is_silent_is_put_out(pair: Pair) -> None:
    group = pair.name("silent")

    def question(side: Side) -> Any:
        at = side.coordinator(group)
        request = join(group, session_timeout_ms=1000)
        entry = side.get(request, 4, to=at)
        answer = side.get(join(group, entry.member_id, session_timeout_ms=1000), 4, to=at)
        beat = _beat(group, answer.member_id, answer.generation_id)
        side.until(lambda: _gone(side, group, at))
        return side.ask(beat, 3, to=at)

    pair.same(question)


def _gone(side: Side, group: str, at: int) -> bool:
    """Whether a simple commit is taken, as it is by empty groups alone."""
    answer = side.get(commit(group, [("never-there", 0, 1)]), 5, to=at)
    error = answer.topics[0].partitions[0].error_code
    return bool(error != ErrorCode.UNKNOWN_MEMBER_ID)


# -- offsets ------------------------------------------------------------------------------------


def commit(
    group: str, positions: Sequence[tuple[str, int, int]], *, member: str = "",
    generation: int = -1, metadata: str | None = "", epoch: int = -1, **more: Any,
) -> OffsetCommitRequest:  # fmt: skip
    return OffsetCommitRequest(
        group_id=group,
        member_id=member,
        generation_id_or_member_epoch=generation,
        topics=[
            OffsetCommitRequest.OffsetCommitRequestTopic(
                name=name,
                partitions=[
                    OffsetCommitRequest.OffsetCommitRequestPartition(
                        partition_index=index,
                        committed_offset=offset,
                        committed_metadata=metadata,
                        committed_leader_epoch=epoch,
                    )
                ],
            )
            for name, index, offset in positions
        ],
        **more,
    )


Wanted = Sequence[tuple[str, Sequence[int]]] | None


def fetch_one(group: str, wanted: Wanted, **more: Any) -> OffsetFetchRequest:
    kind = OffsetFetchRequest.OffsetFetchRequestTopic
    topics = None if wanted is None else [kind(name=n, partition_indexes=p) for n, p in wanted]
    return OffsetFetchRequest(group_id=group, topics=topics, **more)


def fetch_many(groups: Sequence[tuple[str, Wanted]]) -> OffsetFetchRequest:
    kind = OffsetFetchRequest.OffsetFetchRequestTopics
    return OffsetFetchRequest(
        groups=[
            OffsetFetchRequest.OffsetFetchRequestGroup(
                group_id=group,
                topics=None
                if wanted is None
                else [kind(name=n, partition_indexes=p) for n, p in wanted],
            )
            for group, wanted in groups
        ]
    )


def fetched(side: Side, group: str, wanted: Wanted, version: int, to: int) -> Any:
    if version >= 8:
        answer = side.ask(fetch_many([(group, wanted)]), version, to=to)
    else:
        answer = side.ask(fetch_one(group, wanted), version, to=to)
    if answer != CLOSED:
        for one in [answer, *answer["groups"]]:
            one["topics"].sort(key=lambda topic: topic["name"])
            for named in one["topics"]:
                named["partitions"].sort(key=lambda found: found["partition_index"])
    return answer


@pytest.mark.parametrize("version", range(1, 10))
def test_commit_and_fetch(pair: Pair, topic: str, version: int) -> None:
    """Version 0 is not compared: Apache Kafka keeps its offsets in ZooKeeper, for consumers of
    0.8; ours keeps all of them in the group's log."""
    group = pair.name("commits")

    def question(side: Side) -> list[Any]:
        at = side.coordinator(group)
        request = commit(
            group, [(topic, 0, 42), (topic, 1, 7), ("never-there", 0, 1)], metadata="m", epoch=3
        )
        answer = side.ask(request, version, to=at)
        places = [(one["name"], two) for one in answer["topics"] for two in one["partitions"]]
        seen: list[Any] = [sorted(places, key=str)]
        for wanted in ([(topic, [1, 0, 9])], [("never-there", [0])], [], None):
            if wanted is not None or version >= 2:
                seen.append(fetched(side, group, wanted, version, at))
        seen.append(side.ask(commit(group, [(topic, 0, 43)], metadata=None), version, to=at))
        seen.append(fetched(side, group, [(topic, [0])], version, at))
        return seen

    pair.same(question)


@pytest.mark.parametrize("version", [1, 2, 7, 8, 9])
def test_offsets_of_unknown_groups(pair: Pair, topic: str, version: int) -> None:
    group = pair.name("unknown")

    def question(side: Side) -> list[Any]:
        at = side.coordinator(group)
        seen = [fetched(side, group, [(topic, [0])], version, at)]
        if version >= 2:
            seen.append(fetched(side, group, None, version, at))
        return seen

    pair.same(question)


def test_offsets_of_an_empty_group_id(pair: Pair, topic: str) -> None:
    def question(side: Side) -> list[Any]:
        at = side.coordinator("")
        return [
            side.ask(commit("", [(topic, 0, 1)]), 8, to=at),
            side.ask(commit("", [(topic, 0, 1)]), 1, to=at),
            fetched(side, "", [(topic, [0])], 7, at),
            fetched(side, "", [(topic, [0])], 8, at),
        ]

    pair.same(question)


WRONG_COMMITS: dict[str, Callable[[str, int], dict[str, Any]]] = {
    "as the member": lambda m, n: {"member": m, "generation": n},
    "old generation": lambda m, n: {"member": m, "generation": n - 1},
    "later generation": lambda m, n: {"member": m, "generation": n + 1},
    "unknown member": lambda m, n: {"member": "nobody", "generation": n},
    "no member": lambda m, n: {},
    "no generation": lambda m, n: {"member": m},
    "wrong instance": lambda m, n: {"member": m, "generation": n, "group_instance_id": "i"},
    "long metadata": lambda m, n: {"member": m, "generation": n, "metadata": "x" * 5000},
    "negative offset": lambda m, n: {"member": m, "generation": n, "metadata": "neg"},
}


@pytest.mark.parametrize("what", WRONG_COMMITS)
@pytest.mark.parametrize("version", [2, 7, 9])
def test_commits_to_a_stable_group(pair: Pair, topic: str, what: str, version: int) -> None:
    group = pair.name("guarded")
    offset = -5 if what == "negative offset" else 5

    def question(side: Side) -> list[Any]:
        at, member, generation = stable(side, group)
        request = commit(group, [(topic, 0, offset)], **WRONG_COMMITS[what](member, generation))
        return [side.ask(request, version, to=at), fetched(side, group, [(topic, [0])], 5, at)]

    pair.same(question)


@pytest.mark.parametrize("given", [("m", 1), ("", 1), ("m", -1), ("", -1)])
def test_commits_to_no_group(pair: Pair, topic: str, given: tuple[str, int]) -> None:
    group = pair.name("new")

    def question(side: Side) -> Any:
        at = side.coordinator(group)
        request = commit(group, [(topic, 0, 5)], member=given[0], generation=given[1])
        return side.ask(request, 7, to=at)

    pair.same(question)


def test_commit_of_nothing(pair: Pair) -> None:
    group = pair.name("nothing")
    pair.same(lambda side: side.ask(commit(group, []), 7, to=side.coordinator(group)))


def test_offsets_of_several_groups(pair: Pair, topic: str) -> None:
    groups = [pair.name("many"), pair.name("many")]

    def question(side: Side) -> Any:
        at = side.coordinator(groups[0])
        side.ask(commit(groups[0], [(topic, 0, 5)]), 8, to=at)
        answer = side.ask(fetch_many([(groups[0], None), (groups[0], [(topic, [0])])]), 8, to=at)
        return answer["groups"]

    pair.same(question)
