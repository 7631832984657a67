"""OffsetCommit and OffsetFetch of version 0: offsets in ZooKeeper, for consumers of 0.8."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kazoo.exceptions import NoNodeError

from tests.conformance.groups import commit, offset_fetch
from tests.conformance.questions.registry import Asker, Subject
from tests.conformance.questions.stage import filled
from urteil.broker.wire.api_keys import ApiKey

COMMIT = Subject("OffsetCommit", ApiKey.OFFSET_COMMIT)
FETCH = Subject("OffsetFetch", ApiKey.OFFSET_FETCH)


def committed(asker: Asker, places: Sequence[tuple[str, int, int]], **more: Any) -> list[Any]:
    """The answer of a broker that need not coordinate the group, what another one knows then, and
    what a coordinator has."""
    side, group = asker.side, asker.name("old")
    topic = filled(side)
    answer = asker.ask(commit(group, places, **more), to=2)
    result = sorted(
        str((topic["name"], two)) for topic in answer["topics"] for two in topic["partitions"]
    )
    topics = [(topic, [0, 1, 9, 0])]
    newer = side.ask(offset_fetch(1, (group, topics)), 1, to=side.coordinator(group))
    return [result, asker.ask(offset_fetch(0, (group, topics)), to=3), newer]


@COMMIT.question("of old: one, and one of a topic that is not there", until=0)
def commit_one(asker: Asker) -> list[Any]:
    topic = filled(asker.side)
    result = committed(asker, [(topic, 0, 42), ("never-there", 0, 1), (topic, 9, 1)])
    with asker.side.znodes() as zk:
        return [result, zk.get(f"/consumers/{asker.name('old')}/offsets/{topic}/0")[0]]


@COMMIT.question("of old: again, a partition twice, a negative offset", until=0)
def commit_again(asker: Asker) -> list[Any]:
    topic = filled(asker.side)
    first = committed(asker, [(topic, 0, 42)])
    return [first, committed(asker, [(topic, 0, 7), (topic, 0, 8), (topic, 1, -5)])]


LONG = {"metadata": "x", "no metadata": None, "long metadata": "x" * 5000}


@COMMIT.each("of old: with", LONG, until=0)
def commit_long(asker: Asker, metadata: str | None) -> list[Any]:
    return committed(asker, [(filled(asker.side), 0, 42)], metadata=metadata)


@COMMIT.question("of old: nothing", until=0)
def commit_nothing(asker: Asker) -> list[Any]:
    return committed(asker, [])


GROUPS = ("", ".", "..", "/", "a/b", "/a", "a/", "a//b", "a/../b", "grün", "\x01", "\ufffd", "a b")


@COMMIT.each("of old: to a group called", {repr(group): group for group in GROUPS}, until=0)
def commit_to(asker: Asker, group: str) -> list[Any]:
    topic = filled(asker.side)
    result = asker.ask(commit(group, [(topic, 0, 5), ("never-there", 0, 5)]))
    return [result, asker.ask(offset_fetch(0, (group, [(topic, [0]), ("never-there", [0])])))]


@FETCH.question("of old: of an unknown group, of no topics, of unknown topics", until=0)
def fetch_unknown(asker: Asker) -> list[Any]:
    asked = [[(filled(asker.side), [0])], [], [("never-there", [0])]]
    return [asker.ask(offset_fetch(0, (asker.name("unknown"), topics))) for topics in asked]


WRITTEN = (b"12", b"+12", b"-3", b" 12", b"", b"x", b"9223372036854775808", b"1_0", "١".encode())


@FETCH.each("of old: where ZooKeeper has", {repr(data): data for data in WRITTEN}, until=0)
def fetch_written(asker: Asker, value: bytes) -> Any:
    """What consumers of 0.8 have written there themselves, or people."""
    group, topic = asker.name("written"), filled(asker.side)
    with asker.side.znodes() as zk:
        path = f"/consumers/{group}/offsets/{topic}/0"
        try:
            zk.set(path, value)
        except NoNodeError:
            zk.create(path, value, makepath=True)
    return asker.ask(offset_fetch(0, (group, [(topic, [0])])))


@FETCH.question("of old: what was committed to the coordinator", until=0)
def fetch_newer(asker: Asker) -> Any:
    group, topic = asker.name("newer"), filled(asker.side)
    asker.side.ask(commit(group, [(topic, 0, 5)]), 2, to=asker.side.coordinator(group))
    return asker.ask(offset_fetch(0, (group, [(topic, [0])])))
