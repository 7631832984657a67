"""JoinGroup, SyncGroup, Heartbeat, LeaveGroup of one member: its life, and what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.conformance.groups import (
    Assignment,
    Identity,
    Protocol,
    beat,
    commit,
    join,
    leave,
    stable,
    sync,
)
from tests.conformance.questions.registry import Asker, Subject
from tests.conformance.side import CLOSED, Side
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import LeaveGroupRequest
from urteil.broker.wire.schema import Message

JOIN = Subject("JoinGroup", ApiKey.JOIN_GROUP)
SYNC = Subject("SyncGroup", ApiKey.SYNC_GROUP)
BEAT = Subject("Heartbeat", ApiKey.HEARTBEAT)
LEAVE = Subject("LeaveGroup", ApiKey.LEAVE_GROUP)
RANDOM_END = 36


def hide_ids(answer: Any) -> Any:
    """The answer without the random ends of new member ids, which differ between the sides."""
    if answer != CLOSED:
        for holder, name in [(answer, "member_id"), (answer, "leader")]:
            if holder.get(name):
                holder[name] = holder[name][:-RANDOM_END] + "..."
        for member in answer["members"]:
            member["member_id"] = member["member_id"][:-RANDOM_END] + "..."
    return answer


@JOIN.question(
    "a life: join, sync, beat, leave, in versions of about the same age", versions=range(10)
)
def life(asker: Asker) -> list[Any]:
    side, group, version = asker.side, asker.name("life"), asker.version
    at = side.coordinator(group)
    answers = []
    answer = side.get(join(group), version, to=at, client="cli")
    answers.append(hide_ids(side.plain(answer)))
    if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
        answer = side.get(join(group, answer.member_id), version, to=at, client="cli")
        answers.append(hide_ids(side.plain(answer)))
    member, generation = answer.member_id, answer.generation_id
    assignments = [Assignment(member_id=member, assignment=b"mine")]
    request = sync(group, member, generation, assignments=assignments)
    for _ in range(2):
        answers.append(side.ask(request, min(version, 5), to=at))
    pulse = beat(group, member, generation)
    answers.append(side.ask(pulse, min(version, 4), to=at))
    answers.append(hide_ids(side.ask(join(group, member), version, to=at, client="cli")))
    answers.append(side.ask(pulse, min(version, 4), to=at))
    side.names[member] = "the member"
    for _ in range(2):
        answers.append(side.ask(leave(group, member), min(version, 5), to=at))
    answers.append(side.ask(pulse, min(version, 4), to=at))
    return answers


# Two protocols of one name are not asked about: Apache Kafka fails and gives no answer at all.
ODD: dict[str, dict[str, Any]] = {
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


@JOIN.each("odd", ODD, versions=(0, 3, 4, 5, 9))
def odd_joins(asker: Asker, odd: dict[str, Any]) -> Any:
    more = dict(odd)
    group = more.pop("group", asker.name("odd"))
    member = more.pop("member", "")
    at = asker.side.coordinator(group or "x")
    return hide_ids(asker.ask(join(group, member, **more), to=at))


@JOIN.question("protocols that do not fit", versions=(2, 5, 9))
def unfitting(asker: Asker) -> list[Any]:
    group = asker.name("fit")
    at, _, _ = stable(asker.side, group)
    strange = [Protocol(name="strange", metadata=b"")]
    wrong: list[dict[str, Any]] = [{"protocols": strange}, {"protocol_type": "connect"}]
    return [hide_ids(asker.ask(join(group, **fields), to=at)) for fields in wrong]


@JOIN.question("a member that is silent is put out", versions=(4,))
def silent(asker: Asker) -> Any:
    side, group = asker.side, asker.name("silent")
    at = side.coordinator(group)
    entry = side.get(join(group, session_timeout_ms=1000), 4, to=at)
    answer = side.get(join(group, entry.member_id, session_timeout_ms=1000), 4, to=at)
    side.until(lambda: _empty(side, group, at))
    return side.ask(beat(group, answer.member_id, answer.generation_id), 3, to=at)


def _empty(side: Side, group: str, at: int) -> bool:
    """Whether the group is empty: only then is a commit without a member accepted."""
    answer = side.get(commit(group, [("never-there", 0, 1)]), 5, to=at)
    error = answer.topics[0].partitions[0].error_code
    return bool(error != ErrorCode.UNKNOWN_MEMBER_ID)


MakeRequest = Callable[[str, str, int], Message]

SYNCS: dict[str, MakeRequest] = {
    "old generation": lambda g, m, n: sync(g, m, n - 1),
    "later generation": lambda g, m, n: sync(g, m, n + 1),
    "unknown member": lambda g, m, n: sync(g, "nobody", n),
    "empty member": lambda g, m, n: sync(g, "", n),
    "unknown group": lambda g, m, n: sync(g + "x", m, n),
    "empty group": lambda g, m, n: sync("", m, n),
    "other protocol": lambda g, m, n: sync(g, m, n, protocol_name="other"),
    "other type": lambda g, m, n: sync(g, m, n, protocol_type="connect"),
    "null protocol": lambda g, m, n: sync(g, m, n, protocol_name=None),
    "null type": lambda g, m, n: sync(g, m, n, protocol_type=None),
    "wrong instance": lambda g, m, n: sync(g, m, n, group_instance_id="i"),
}
BEATS: dict[str, MakeRequest] = {
    "old generation": lambda g, m, n: beat(g, m, n - 1),
    "later generation": lambda g, m, n: beat(g, m, n + 1),
    "generation -1": lambda g, m, n: beat(g, m, -1),
    "unknown member": lambda g, m, n: beat(g, "nobody", n),
    "empty member": lambda g, m, n: beat(g, "", n),
    "unknown group": lambda g, m, n: beat(g + "x", m, n),
    "empty group": lambda g, m, n: beat("", m, n),
    "wrong instance": lambda g, m, n: beat(g, m, n, group_instance_id="i"),
}
LEAVES: dict[str, MakeRequest] = {
    "unknown member": lambda g, m, n: leave(g, "nobody"),
    "two": lambda g, m, n: leave(g, "nobody", Identity(member_id="", group_instance_id="i")),
    "the same twice": lambda g, m, n: leave(g, m, Identity(member_id=m)),
    "unknown group": lambda g, m, n: leave(g + "x", m),
    "empty group": lambda g, m, n: leave("", m),
    "nobody": lambda g, m, n: LeaveGroupRequest(group_id=g, members=[]),
}


def in_a_stable_group(asker: Asker, wrong: MakeRequest) -> Any:
    group = asker.name("wrong")
    at, member, generation = stable(asker.side, group)
    request: Any = wrong(group, member, generation)
    if request.group_id == group:
        return asker.ask(request, to=at)
    # another name's coordinator may be another broker: all brokers are asked
    return sorted(str(asker.ask(request, to=broker)) for broker in (1, 2, 3))


SYNC.each("wrong", SYNCS)(in_a_stable_group)
BEAT.each("wrong", BEATS)(in_a_stable_group)
LEAVE.each("wrong", LEAVES)(in_a_stable_group)

TO_OTHER_BROKERS: dict[str, tuple[Subject, MakeRequest]] = {
    "join": (JOIN, lambda g, m, n: join(g)),
    "sync": (SYNC, lambda g, m, n: sync(g, m, n)),
    "beat": (BEAT, lambda g, m, n: beat(g, m, n)),
    "leave": (LEAVE, lambda g, m, n: leave(g, m)),
}


def ask_another_broker(asker: Asker, request: MakeRequest) -> Any:
    group = asker.name("elsewhere")
    return asker.ask(request(group, "m", 1), to=asker.side.coordinator(group) % 3 + 1)


for _text, (_subject, _wrong) in TO_OTHER_BROKERS.items():
    _subject.each("not the coordinator", {_text: _wrong})(ask_another_broker)
