"""OffsetCommit and OffsetFetch of the versions whose offsets groups coordinate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.conformance.groups import commit, offset_fetch, stable, stored
from tests.conformance.questions.registry import Asked, Subject
from tests.conformance.questions.stage import filled
from urteil.broker.groups.records import decode_offset, decode_place
from urteil.broker.wire.api_keys import ApiKey

COMMIT = Subject("OffsetCommit", ApiKey.OFFSET_COMMIT)
FETCH = Subject("OffsetFetch", ApiKey.OFFSET_FETCH)


@COMMIT.question("committed, and fetched", versions=range(1, 10))
def commit_and_fetch(it: Asked) -> list[Any]:
    side, group, topic = it.side, it.name("commits"), filled(it.side)
    at = side.coordinator(group)
    places = [(topic, 0, 42), (topic, 1, 7), ("never-there", 0, 1)]
    answer = it.ask(commit(group, places, metadata="m", epoch=3), to=at)
    partitions = [(one["name"], two) for one in answer["topics"] for two in one["partitions"]]
    seen: list[Any] = [sorted(partitions, key=str)]
    for wanted in ([(topic, [1, 0, 9])], [("never-there", [0])], [], None):
        if wanted is not None or it.version >= 2:
            seen.append(it.side.ask(offset_fetch(it.version, (group, wanted)), it.version, to=at))
    seen.append(it.ask(commit(group, [(topic, 0, 43)], metadata=None), to=at))
    request = offset_fetch(it.version, (group, [(topic, [0])]))
    seen.append(side.ask(request, it.version, to=at))
    return seen


@FETCH.question("of an unknown group", versions=(1, 2, 7, 8, 9))
def unknown_group(it: Asked) -> list[Any]:
    group = it.name("unknown")
    at = it.side.coordinator(group)
    asked = [[(filled(it.side), [0])], [], *([None] if it.version >= 2 else [])]
    return [it.ask(offset_fetch(it.version, (group, one)), to=at) for one in asked]


@FETCH.question("of an empty group id", since=1)
def fetch_empty_group(it: Asked) -> Any:
    at = it.side.coordinator("")
    return it.ask(offset_fetch(it.version, ("", [(filled(it.side), [0])])), to=at)


@FETCH.question("of two groups, one twice", since=8)
def several_groups(it: Asked) -> Any:
    group, topic = it.name("many"), filled(it.side)
    at = it.side.coordinator(group)
    it.side.ask(commit(group, [(topic, 0, 5)]), 8, to=at)
    return it.ask(offset_fetch(it.version, (group, None), (group, [(topic, [0])])), to=at)


@FETCH.question("a partition twice", since=1)
def partition_twice(it: Asked) -> Any:
    group = it.name("double")
    at = it.side.coordinator(group)
    return it.ask(offset_fetch(it.version, (group, [(filled(it.side), [0, 0])])), to=at)


@COMMIT.question("to an empty group id", since=1)
def commit_to_an_empty_group(it: Asked) -> Any:
    return it.ask(commit("", [(filled(it.side), 0, 1)]), to=it.side.coordinator(""))


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
def to_a_stable_group(it: Asked, given: Callable[[str, int], dict[str, Any]]) -> list[Any]:
    side, group, topic = it.side, it.name("guarded"), filled(it.side)
    at, member, generation = stable(side, group)
    more = given(member, generation)
    place = (topic, more.pop("partition", 0), more.pop("offset", 5))
    answer = it.ask(commit(group, [place], **more), to=at)
    return [answer, side.ask(offset_fetch(5, (group, [(topic, [0])])), 5, to=at)]


NO_GROUP = {"member and generation": ("m", 1), "generation": ("", 1), "member": ("m", -1),
            "neither": ("", -1)}  # fmt: skip


@COMMIT.each("to no group, with", NO_GROUP, since=1)
def to_no_group(it: Asked, given: tuple[str, int]) -> Any:
    group = it.name("new")
    request = commit(group, [(filled(it.side), 0, 5)], member=given[0], generation=given[1])
    return it.ask(request, to=it.side.coordinator(group))


@COMMIT.question("nothing", since=1)
def nothing(it: Asked) -> Any:
    group = it.name("nothing")
    return it.ask(commit(group, []), to=it.side.coordinator(group))


@COMMIT.question("a partition twice", since=1)
def commit_twice(it: Asked) -> Any:
    group, topic = it.name("double"), filled(it.side)
    at = it.side.coordinator(group)
    answer = it.ask(commit(group, [(topic, 0, 5), (topic, 0, 6)]), to=at)
    return [answer, it.side.ask(offset_fetch(5, (group, [(topic, [0])])), 5, to=at)]


KEPT = {"a second": 1000, "no time": 0, "a time before": -5, "for ever": (1 << 63) - 1}


@COMMIT.each("to be kept for", KEPT, versions=(2, 4))
def kept_for(it: Asked, retention_ms: int) -> list[Any]:
    return stamps_of(it, retention_time_ms=retention_ms)


@COMMIT.question("of an earlier time", versions=(1,))
def committed_earlier(it: Asked) -> list[Any]:
    version, stamp, _ = stamps_of(it, stamp=12345)
    return [version, stamp]


def stamps_of(it: Asked, **given: Any) -> list[Any]:
    """Of a position as it is stored: its version, when it was committed and when it expires, which
    appears in the difference at its new place."""
    group = it.name("stamped")
    it.ask(commit(group, [(filled(it.side), 0, 5)], **given), to=it.side.coordinator(group))
    found = [one for one in stored(it.side, group) if (decode_place(one.key) or ("",))[0] == group]
    value = decode_offset(found[-1].value)
    kept_ms = (value.expire_timestamp - value.commit_timestamp) % (1 << 64)
    return [bytes(found[-1].value[:2]), value.commit_timestamp if "stamp" in given else 0, kept_ms]


@COMMIT.question("not the coordinator", since=1)
def commit_elsewhere(it: Asked) -> Any:
    group = it.name("elsewhere")
    other = it.side.coordinator(group) % 3 + 1
    return it.ask(commit(group, [(filled(it.side), 0, 5)]), to=other)


@FETCH.question("not the coordinator", since=1)
def fetch_elsewhere(it: Asked) -> Any:
    group = it.name("elsewhere")
    other = it.side.coordinator(group) % 3 + 1
    return it.ask(offset_fetch(it.version, (group, [(filled(it.side), [0])])), to=other)
