"""OffsetCommit and OffsetFetch of the versions whose offsets groups coordinate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.conformance.groups import commit, offset_fetch, stable, stored
from tests.conformance.questions.registry import Asker, Subject
from tests.conformance.questions.stage import filled
from urteil.broker.groups.records import decode_offset, decode_place
from urteil.broker.wire.api_keys import ApiKey

COMMIT = Subject("OffsetCommit", ApiKey.OFFSET_COMMIT)
FETCH = Subject("OffsetFetch", ApiKey.OFFSET_FETCH)


@COMMIT.question("committed, and fetched", versions=range(1, 10))
def commit_and_fetch(asker: Asker) -> list[Any]:
    side, group, topic = asker.side, asker.name("commits"), filled(asker.side)
    at = side.coordinator(group)
    places = [(topic, 0, 42), (topic, 1, 7), ("never-there", 0, 1)]
    answer = asker.ask(commit(group, places, metadata="m", epoch=3), to=at)
    partitions = [(topic["name"], two) for topic in answer["topics"] for two in topic["partitions"]]
    answers: list[Any] = [sorted(partitions, key=str)]
    for topics in ([(topic, [1, 0, 9])], [("never-there", [0])], [], None):
        if topics is not None or asker.version >= 2:
            answers.append(
                asker.side.ask(offset_fetch(asker.version, (group, topics)), asker.version, to=at)
            )
    answers.append(asker.ask(commit(group, [(topic, 0, 43)], metadata=None), to=at))
    request = offset_fetch(asker.version, (group, [(topic, [0])]))
    answers.append(side.ask(request, asker.version, to=at))
    return answers


@FETCH.question("of an unknown group", versions=(1, 2, 7, 8, 9))
def unknown_group(asker: Asker) -> list[Any]:
    group = asker.name("unknown")
    at = asker.side.coordinator(group)
    asked = [[(filled(asker.side), [0])], [], *([None] if asker.version >= 2 else [])]
    return [asker.ask(offset_fetch(asker.version, (group, topics)), to=at) for topics in asked]


@FETCH.question("of an empty group id", since=1)
def fetch_empty_group(asker: Asker) -> Any:
    at = asker.side.coordinator("")
    return asker.ask(offset_fetch(asker.version, ("", [(filled(asker.side), [0])])), to=at)


@FETCH.question("of two groups, one twice", since=8)
def several_groups(asker: Asker) -> Any:
    group, topic = asker.name("many"), filled(asker.side)
    at = asker.side.coordinator(group)
    asker.side.ask(commit(group, [(topic, 0, 5)]), 8, to=at)
    return asker.ask(offset_fetch(asker.version, (group, None), (group, [(topic, [0])])), to=at)


@FETCH.question("a partition twice", since=1)
def partition_twice(asker: Asker) -> Any:
    group = asker.name("double")
    at = asker.side.coordinator(group)
    return asker.ask(offset_fetch(asker.version, (group, [(filled(asker.side), [0, 0])])), to=at)


@COMMIT.question("to an empty group id", since=1)
def commit_to_an_empty_group(asker: Asker) -> Any:
    return asker.ask(commit("", [(filled(asker.side), 0, 1)]), to=asker.side.coordinator(""))


STABLE: dict[str, Callable[[str, int], dict[str, Any]]] = {
    "as the member": lambda m, n: {"member": m, "generation": n},
    "old generation": lambda m, n: {"member": m, "generation": n - 1},
    "later generation": lambda m, n: {"member": m, "generation": n + 1},
    "unknown member": lambda m, n: {"member": "nobody", "generation": n},
    "no member": lambda m, n: {},
    "no generation": lambda m, n: {"member": m},
    "wrong instance": lambda m, n: {"member": m, "generation": n, "group_instance_id": "i"},
    "long metadata": lambda m, n: {"member": m, "generation": n, "metadata": "x" * 5000},
    "negative offset": lambda m, n: {"member": m, "generation": n, "offset": -5},
    "partition -1": lambda m, n: {"member": m, "generation": n, "partition": -1},
}


@COMMIT.each("to a stable group", STABLE, versions=(2, 7, 9))
def to_a_stable_group(asker: Asker, given: Callable[[str, int], dict[str, Any]]) -> list[Any]:
    side, group, topic = asker.side, asker.name("guarded"), filled(asker.side)
    at, member, generation = stable(side, group)
    more = given(member, generation)
    place = (topic, more.pop("partition", 0), more.pop("offset", 5))
    answer = asker.ask(commit(group, [place], **more), to=at)
    return [answer, side.ask(offset_fetch(5, (group, [(topic, [0])])), 5, to=at)]


NO_GROUP = {"member and generation": ("m", 1), "generation": ("", 1), "member": ("m", -1),
            "neither": ("", -1)}  # fmt: skip


@COMMIT.each("to no group, with", NO_GROUP, since=1)
def to_no_group(asker: Asker, given: tuple[str, int]) -> Any:
    group = asker.name("new")
    request = commit(group, [(filled(asker.side), 0, 5)], member=given[0], generation=given[1])
    return asker.ask(request, to=asker.side.coordinator(group))


@COMMIT.question("nothing", since=1)
def nothing(asker: Asker) -> Any:
    group = asker.name("nothing")
    return asker.ask(commit(group, []), to=asker.side.coordinator(group))


@COMMIT.question("a partition twice", since=1)
def commit_twice(asker: Asker) -> Any:
    group, topic = asker.name("double"), filled(asker.side)
    at = asker.side.coordinator(group)
    answer = asker.ask(commit(group, [(topic, 0, 5), (topic, 0, 6)]), to=at)
    return [answer, asker.side.ask(offset_fetch(5, (group, [(topic, [0])])), 5, to=at)]


KEPT = {"a second": 1000, "no time": 0, "a time before": -5, "for ever": (1 << 63) - 1}


@COMMIT.each("to be kept for", KEPT, versions=(2, 4))
def kept_for(asker: Asker, retention_ms: int) -> list[Any]:
    return stamps_of(asker, retention_time_ms=retention_ms)


@COMMIT.question("of an earlier time", versions=(1,))
def committed_earlier(asker: Asker) -> list[Any]:
    version, stamp, _ = stamps_of(asker, stamp=12345)
    return [version, stamp]


def stamps_of(asker: Asker, **given: Any) -> list[Any]:
    """Of a position as it is stored: its version, when it was committed and when it expires, which
    appears in the difference at its new place."""
    group = asker.name("stamped")
    asker.ask(
        commit(group, [(filled(asker.side), 0, 5)], **given), to=asker.side.coordinator(group)
    )
    records = [
        record
        for record in stored(asker.side, group)
        if (decode_place(record.key) or ("",))[0] == group
    ]
    value = decode_offset(records[-1].value)
    kept_ms = (value.expire_timestamp - value.commit_timestamp) % (1 << 64)
    return [
        bytes(records[-1].value[:2]),
        value.commit_timestamp if "stamp" in given else 0,
        kept_ms,
    ]


@COMMIT.question("not the coordinator", since=1)
def commit_elsewhere(asker: Asker) -> Any:
    group = asker.name("elsewhere")
    other = asker.side.coordinator(group) % 3 + 1
    return asker.ask(commit(group, [(filled(asker.side), 0, 5)]), to=other)


@FETCH.question("not the coordinator", since=1)
def fetch_elsewhere(asker: Asker) -> Any:
    group = asker.name("elsewhere")
    other = asker.side.coordinator(group) % 3 + 1
    return asker.ask(offset_fetch(asker.version, (group, [(filled(asker.side), [0])])), to=other)
