"""OffsetCommit and OffsetFetch of version 0: offsets in ZooKeeper, for consumers of 0.8."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kazoo.exceptions import NoNodeError

from tests.conformance.groups import commit, offset_fetch
from tests.conformance.questions.registry import Asked, Subject
from tests.conformance.questions.stage import filled
from urteil.broker.wire.api_keys import ApiKey

COMMIT = Subject("OffsetCommit", ApiKey.OFFSET_COMMIT)
FETCH = Subject("OffsetFetch", ApiKey.OFFSET_FETCH)


def committed(it: Asked, places: Sequence[tuple[str, int, int]], **more: Any) -> list[Any]:
    """The answer of a broker that need not coordinate the group, what another one knows then, and
    what a coordinator has."""
    side, group = it.side, it.name("old")
    topic = filled(side)
    answer = it.ask(commit(group, places, **more), to=2)
    result = sorted(
        str((one["name"], two)) for one in answer["topics"] for two in one["partitions"]
    )
    wanted = [(topic, [0, 1, 9, 0])]
    newer = side.ask(offset_fetch(1, (group, wanted)), 1, to=side.coordinator(group))
    return [result, it.ask(offset_fetch(0, (group, wanted)), to=3), newer]


@COMMIT.question("of old: one, and one of a topic that is not there", until=0)
def commit_one(it: Asked) -> list[Any]:
    topic = filled(it.side)
    found = committed(it, [(topic, 0, 42), ("never-there", 0, 1), (topic, 9, 1)])
    with it.side.znodes() as zk:
        return [found, zk.get(f"/consumers/{it.name('old')}/offsets/{topic}/0")[0]]


@COMMIT.question("of old: again, a partition twice, a negative offset", until=0)
def commit_again(it: Asked) -> list[Any]:
    topic = filled(it.side)
    first = committed(it, [(topic, 0, 42)])
    return [first, committed(it, [(topic, 0, 7), (topic, 0, 8), (topic, 1, -5)])]


LONG = {"metadata": "x", "no metadata": None, "long metadata": "x" * 5000}


@COMMIT.each("of old: with", LONG, until=0)
def commit_long(it: Asked, metadata: str | None) -> list[Any]:
    return committed(it, [(filled(it.side), 0, 42)], metadata=metadata)


@COMMIT.question("of old: nothing", until=0)
def commit_nothing(it: Asked) -> list[Any]:
    return committed(it, [])


GROUPS = ("", ".", "..", "/", "a/b", "/a", "a/", "a//b", "a/../b", "grün", "\x01", "\ufffd", "a b")


@COMMIT.each("of old: to a group called", {repr(one): one for one in GROUPS}, until=0)
def commit_to(it: Asked, group: str) -> list[Any]:
    topic = filled(it.side)
    result = it.ask(commit(group, [(topic, 0, 5), ("never-there", 0, 5)]))
    return [result, it.ask(offset_fetch(0, (group, [(topic, [0]), ("never-there", [0])])))]


@FETCH.question("of old: of an unknown group, of no topics, of unknown topics", until=0)
def fetch_unknown(it: Asked) -> list[Any]:
    asked = [[(filled(it.side), [0])], [], [("never-there", [0])]]
    return [it.ask(offset_fetch(0, (it.name("unknown"), one))) for one in asked]


WRITTEN = (b"12", b"+12", b"-3", b" 12", b"", b"x", b"9223372036854775808", b"1_0", "١".encode())


@FETCH.each("of old: where ZooKeeper has", {repr(one): one for one in WRITTEN}, until=0)
def fetch_written(it: Asked, value: bytes) -> Any:
    """What consumers of 0.8 have written there themselves, or people."""
    group, topic = it.name("written"), filled(it.side)
    with it.side.znodes() as zk:
        path = f"/consumers/{group}/offsets/{topic}/0"
        try:
            zk.set(path, value)
        except NoNodeError:
            zk.create(path, value, makepath=True)
    return it.ask(offset_fetch(0, (group, [(topic, [0])])))


@FETCH.question("of old: what was committed to the coordinator", until=0)
def fetch_newer(it: Asked) -> Any:
    group, topic = it.name("newer"), filled(it.side)
    it.side.ask(commit(group, [(topic, 0, 5)]), 2, to=it.side.coordinator(group))
    return it.ask(offset_fetch(0, (group, [(topic, [0])])))
