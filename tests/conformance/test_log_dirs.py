"""DeleteRecords, DescribeLogDirs, AlterReplicaLogDirs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.conformance.conftest import Pair
from tests.conformance.records import batch, produce
from tests.conformance.side import Side
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import (
    AlterReplicaLogDirsRequest,
    DeleteRecordsRequest,
    DescribeLogDirsRequest,
    ListOffsetsRequest,
)

DELETE_VERSIONS, DESCRIBE_VERSIONS, ALTER_VERSIONS = (0, 2), (0, 3, 4), (0, 2)
RECORDS = 12


def fill(pair: Pair, name: str, count: int = RECORDS // 3) -> None:
    for n in range(count):
        data = batch([b"%d-%d" % (n, m) for m in range(3)])
        pair.both(lambda side, d=data: side.ask(produce(name, d), 9))  # type: ignore[misc]


def delete(
    side: Side,
    version: int,
    *wanted: tuple[str, int, int],
    to: int = 1,
    timeout_ms: int = 10_000,
) -> Any:
    """Answers by topic and partition, whatever their order (Apache Kafka's are a map's)."""
    topics: dict[str, list[DeleteRecordsRequest.DeleteRecordsPartition]] = {}
    for topic, partition, offset in wanted:
        topics.setdefault(topic, []).append(
            DeleteRecordsRequest.DeleteRecordsPartition(partition_index=partition, offset=offset)
        )
    request = DeleteRecordsRequest(
        topics=[
            DeleteRecordsRequest.DeleteRecordsTopic(name=name, partitions=partitions)
            for name, partitions in topics.items()
        ],
        timeout_ms=timeout_ms,
    )
    answer = side.ask(request, version, to=to)
    return sorted(
        (topic["name"], one["partition_index"], one["low_watermark"], one["error_code"])
        for topic in answer["topics"]
        for one in topic["partitions"]
    )


def earliest(side: Side, topic: str, *, to: int) -> int:
    asked = ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=-2)
    request = ListOffsetsRequest(
        replica_id=-2,
        topics=[ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=[asked])],
    )
    return int(side.get(request, 4, to=to).topics[0].partitions[0].offset)


@pytest.mark.parametrize("version", DELETE_VERSIONS)
def test_records_are_deleted_on_every_replica(pair: Pair, version: int) -> None:
    name = pair.name("deleted")
    pair.both(lambda side: side.create(name, [(1, 2, 3)]))
    fill(pair, name)
    for offset in (4, 3, -1):
        answer = pair.same(lambda side, o=offset: delete(side, version, (name, 0, o)))  # type: ignore[misc]
        assert answer[0][3] == "NONE"
        for broker in (1, 2, 3):
            pair.same(lambda side, b=broker: earliest(side, name, to=b))  # type: ignore[misc]
    pair.same(lambda side: delete(side, version, (name, 0, RECORDS), (name, 0, RECORDS)))


def test_who_cannot_wait_for_the_followers_is_told(pair: Pair) -> None:
    """The leader's part is done; the followers hear of it by their next fetch."""
    name = pair.name("hurried")
    pair.both(lambda side: side.create(name, [(1, 2, 3)]))
    fill(pair, name)
    answer = pair.same(lambda side: delete(side, 2, (name, 0, 5), timeout_ms=0))
    assert answer == [(name, 0, 0, "REQUEST_TIMED_OUT")]
    pair.same(lambda side: earliest(side, name, to=1))
    pair.both(lambda side: side.until(lambda: earliest(side, name, to=3) == 5))


@pytest.mark.parametrize("version", DELETE_VERSIONS)
def test_why_records_are_not_deleted(pair: Pair, version: int) -> None:
    name, packed, both = (pair.name(kind) for kind in ("kept", "compacted", "both-ways"))
    pair.both(lambda side: side.create(name, [(1, 2), (2, 1)]))
    pair.both(lambda side: side.create(packed, [(1,)], {"cleanup.policy": "compact"}))
    pair.both(lambda side: side.create(both, [(1,)], {"cleanup.policy": "compact,delete"}))
    pair.both(lambda side: side.coordinator("any-group"))  # so that its topic is there
    for topic in (name, packed, both):
        fill(pair, topic)
    expected = {
        (name, 0, RECORDS + 1): "OFFSET_OUT_OF_RANGE",
        (name, 0, -2): "OFFSET_OUT_OF_RANGE",
        (name, 1, 0): "NOT_LEADER_OR_FOLLOWER",
        (name, 7, 0): "UNKNOWN_TOPIC_OR_PARTITION",
        ("no-such-topic", 0, 0): "UNKNOWN_TOPIC_OR_PARTITION",
        ("", 0, 0): "UNKNOWN_TOPIC_OR_PARTITION",
        (packed, 0, 3): "POLICY_VIOLATION",
        (both, 0, 3): "NONE",
        ("__consumer_offsets", 0, 0): "INVALID_TOPIC_EXCEPTION",
    }
    for wanted, error in expected.items():
        answer = pair.same(lambda side, w=wanted: delete(side, version, w))  # type: ignore[misc]
        assert answer[0][3] == error
    pair.same(lambda side: delete(side, version, *list(expected)[1:]))
    pair.same(lambda side: delete(side, version))


def directory(side: Side, broker: int = 1) -> str:
    """The broker's only log directory, which answers call `the directory` from now on."""
    answer = side.get(DescribeLogDirsRequest(topics=[]), 4, to=broker)
    (found,) = answer.results
    side.names[found.log_dir] = "the directory"
    return str(found.log_dir)


def describe(side: Side, version: int, topics: dict[str, Sequence[int]] | None) -> Any:
    directory(side)
    asked = None
    if topics is not None:
        asked = [
            DescribeLogDirsRequest.DescribableLogDirTopic(topic=name, partitions=partitions)
            for name, partitions in topics.items()
        ]
    answer = side.ask(DescribeLogDirsRequest(topics=asked), version)
    for result in answer["results"]:
        for field in ("total_bytes", "usable_bytes"):
            result[field] = "some" if result[field] > 0 else result[field]
        result["topics"].sort(key=lambda one: str(one["name"]))
        for topic in result["topics"]:
            topic["partitions"].sort(key=lambda one: int(one["partition_index"]))
        if asked is None:  # other tests' topics lie there as well
            result["topics"] = len(result["topics"]) > 0
    return answer


@pytest.mark.parametrize("version", DESCRIBE_VERSIONS)
def test_what_lies_in_a_directory(pair: Pair, version: int) -> None:
    name = pair.name("described")
    pair.both(lambda side: side.create(name, [(1, 2), (2, 1), (2, 3)]))
    fill(pair, name)
    for topics in (
        {name: [0, 1, 2]},
        {name: [1], "no-such-topic": [0]},
        {name: []},
        {},
        None,
    ):
        pair.same(lambda side, t=topics: describe(side, version, t))  # type: ignore[misc]


def alter(side: Side, version: int, path: str, topic: str, partition: int, *, to: int = 1) -> Any:
    wanted = AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic(name=topic, partitions=[partition])
    request = AlterReplicaLogDirsRequest(
        dirs=[AlterReplicaLogDirsRequest.AlterReplicaLogDir(path=path, topics=[wanted])]
    )
    return side.ask(request, version, to=to)


@pytest.mark.parametrize("version", ALTER_VERSIONS)
def test_why_a_replica_does_not_move(pair: Pair, version: int) -> None:
    name = pair.name("moved")
    pair.both(lambda side: side.create(name, [(1,), (2,)]))
    for topic, partition in ((name, 0), (name, 1), (name, 9), ("no-such-topic", 0), ("x" * 230, 0)):
        for path in ("", "/no/such/directory", "relative"):
            pair.same(
                lambda side, p=path, t=topic, n=partition: alter(side, version, p, t, n)  # type: ignore[misc]
            )
        pair.same(
            lambda side, t=topic, n=partition: alter(side, version, directory(side), t, n)  # type: ignore[misc]
        )
    pair.same(lambda side: alter(side, version, directory(side) + "/", name, 0))
    pair.same(lambda side: side.ask(AlterReplicaLogDirsRequest(dirs=[]), version))


def test_where_a_new_replica_shall_lie_is_kept_for_later(pair: Pair) -> None:
    name = pair.name("preferred")
    asked = pair.same(lambda side: alter(side, 2, directory(side), name, 0))
    error = asked["results"][0]["partitions"][0]["error_code"]
    assert error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.name
    pair.both(lambda side: side.create(name, [(1,)]))
    pair.same(lambda side: describe(side, 4, {name: [0]}))
