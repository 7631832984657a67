"""CreateTopics, DeleteTopics, Metadata, DescribeCluster, DescribeConfigs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest

from tests.conformance.conftest import Pair
from tests.conformance.side import Side
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import (
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    MetadataRequest,
)

Topic = CreateTopicsRequest.CreatableTopic
Replicas = CreateTopicsRequest.CreatableReplicaAssignment
Config = CreateTopicsRequest.CreatableTopicConfig
Resource = DescribeConfigsRequest.DescribeConfigsResource
STRANGE_ID = UUID("12345678-1234-1234-1234-123456789abc")


def assigned(*replicas: Sequence[int]) -> list[Any]:
    return [Replicas(partition_index=n, broker_ids=list(ids)) for n, ids in enumerate(replicas)]


def create(side: Side, topics: Sequence[Any], version: int, *, validate_only: bool = False) -> Any:
    request = CreateTopicsRequest(topics=topics, timeout_ms=10_000, validate_only=validate_only)
    answer = side.ask(request, version, to=side.controller())
    if answer != "closed":
        answer["topics"].sort(key=lambda one: one["name"])  # ours and theirs go by other orders
        for one in answer["topics"]:
            if one["configs"]:
                one["configs"].sort(key=lambda config: config["name"])
    return answer


@pytest.mark.parametrize("version", range(8))
def test_create_and_delete(pair: Pair, version: int) -> None:
    names = [pair.name("created"), pair.name("created")]

    def made(side: Side) -> Any:
        topics = [
            Topic(name=names[0], num_partitions=2, replication_factor=3),
            Topic(
                name=names[1],
                num_partitions=-1,
                replication_factor=-1,
                assignments=assigned((1, 2), (3, 1)),
                configs=[
                    Config(name="retention.ms", value="60000"),
                    Config(name="cleanup.policy", value="compact"),
                ],
            ),
        ]
        return create(side, topics, version)

    def again(side: Side) -> Any:
        return create(side, [Topic(name=names[0], num_partitions=1, replication_factor=1)], version)

    def deleted(side: Side) -> Any:
        version_of_delete = min(version, 6)
        state = DeleteTopicsRequest.DeleteTopicState
        request = DeleteTopicsRequest(
            topics=[state(name=names[0]), state(name="never-there")],
            topic_names=[names[0], "never-there"],
            timeout_ms=10_000,
        )
        answer = side.ask(request, version_of_delete, to=side.controller())
        answer["responses"].sort(key=lambda one: one["name"])
        return answer

    pair.same(made)
    pair.same(again)
    pair.same(deleted)


REFUSED: dict[str, list[Any]] = {
    "no name": [Topic(name="", num_partitions=1, replication_factor=1)],
    "dot": [Topic(name=".", num_partitions=1, replication_factor=1)],
    "two dots": [Topic(name="..", num_partitions=1, replication_factor=1)],
    "bad letters": [Topic(name="a b", num_partitions=1, replication_factor=1)],
    "long": [Topic(name="x" * 250, num_partitions=1, replication_factor=1)],
    "too many replicas": [Topic(name="c1", num_partitions=1, replication_factor=4)],
    "no replicas": [Topic(name="c1", num_partitions=1, replication_factor=0)],
    "minus two replicas": [Topic(name="c1", num_partitions=1, replication_factor=-2)],
    "no partitions": [Topic(name="c1", num_partitions=0, replication_factor=1)],
    "minus two partitions": [Topic(name="c1", num_partitions=-2, replication_factor=1)],
    "unknown broker": [
        Topic(name="c1", num_partitions=-1, replication_factor=-1, assignments=assigned((9,)))
    ],
    "replicas twice": [
        Topic(name="c1", num_partitions=-1, replication_factor=-1, assignments=assigned((1, 1)))
    ],
    "uneven replicas": [
        Topic(
            name="c1", num_partitions=-1, replication_factor=-1, assignments=assigned((1, 2), (3,))
        )
    ],
    "assignment and count": [
        Topic(name="c1", num_partitions=1, replication_factor=-1, assignments=assigned((1,)))
    ],
    "assignment and factor": [
        Topic(name="c1", num_partitions=-1, replication_factor=1, assignments=assigned((1,)))
    ],
    "partitions with a gap": [
        Topic(
            name="c1",
            num_partitions=-1,
            replication_factor=-1,
            assignments=[
                Replicas(partition_index=0, broker_ids=[1]),
                Replicas(partition_index=2, broker_ids=[2]),
            ],
        )
    ],
    "not from 0": [
        Topic(
            name="c1",
            num_partitions=-1,
            replication_factor=-1,
            assignments=[Replicas(partition_index=1, broker_ids=[1])],
        )
    ],
    "partition twice": [
        Topic(
            name="c1",
            num_partitions=-1,
            replication_factor=-1,
            assignments=[
                Replicas(partition_index=0, broker_ids=[1]),
                Replicas(partition_index=0, broker_ids=[2]),
            ],
        )
    ],
    "topic twice": [
        Topic(name="c1", num_partitions=1, replication_factor=1),
        Topic(name="c1", num_partitions=2, replication_factor=1),
        Topic(name="c2", num_partitions=0, replication_factor=1),
    ],
    "unknown config": [
        Topic(
            name="c1",
            num_partitions=1,
            replication_factor=1,
            configs=[Config(name="no.such.config", value="1")],
        )
    ],
    "bad config value": [
        Topic(
            name="c1",
            num_partitions=1,
            replication_factor=1,
            configs=[Config(name="retention.ms", value="soon")],
        )
    ],
    "config out of range": [
        Topic(
            name="c1",
            num_partitions=1,
            replication_factor=1,
            configs=[Config(name="segment.bytes", value="1")],
        )
    ],
    "null config value": [
        Topic(
            name="c1",
            num_partitions=1,
            replication_factor=1,
            configs=[Config(name="retention.ms", value=None)],
        )
    ],
    "bad policy": [
        Topic(
            name="c1",
            num_partitions=1,
            replication_factor=1,
            configs=[Config(name="cleanup.policy", value="hoard")],
        )
    ],
    "fine": [Topic(name="c1", num_partitions=3, replication_factor=2)],
    "fine with config": [
        Topic(
            name="c1",
            num_partitions=3,
            replication_factor=2,
            configs=[Config(name="compression.type", value="gzip")],
        )
    ],
    "fine by assignment": [
        Topic(
            name="c1",
            num_partitions=-1,
            replication_factor=-1,
            assignments=assigned((1, 2), (3, 1)),
        )
    ],
    "defaults": [Topic(name="c1", num_partitions=-1, replication_factor=-1)],
    "nothing": [],
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_create_says_without_creating(pair: Pair, what: str) -> None:
    pair.same(lambda side: create(side, REFUSED[what], 7, validate_only=True))


def test_a_partition_without_replicas(pair: Pair) -> None:
    """Apache Kafka makes such a topic, which nobody could ever use or mend; ours does not."""
    empty = Topic(name="c1", num_partitions=-1, replication_factor=-1, assignments=assigned(()))
    answers = [create(side, [empty], 7, validate_only=True) for side in (pair.theirs, pair.ours)]
    errors = [answer["topics"][0]["error_code"] for answer in answers]
    assert errors == ["NONE", "INVALID_REPLICA_ASSIGNMENT"]


@pytest.mark.parametrize("version", [0, 1, 3, 4])
def test_defaults_of_old_create_versions(pair: Pair, version: int) -> None:
    name = pair.name("c")
    topic = Topic(name=name, num_partitions=-1, replication_factor=-1)
    pair.same(lambda side: create(side, [topic], version, validate_only=True))


def delete(side: Side, topics: Sequence[tuple[str | None, UUID | None]], version: int = 6) -> Any:
    states = [
        DeleteTopicsRequest.DeleteTopicState(name=name, **({"topic_id": one} if one else {}))
        for name, one in topics
    ]
    request = DeleteTopicsRequest(topics=states, timeout_ms=10_000)
    answer = side.ask(request, version, to=side.controller())
    if answer != "closed":
        answer["responses"].sort(key=lambda one: (one["name"] or "", one["error_code"]))
    return answer


def test_delete_by_id_and_wrongly(pair: Pair) -> None:
    name = pair.name("gone")
    pair.both(lambda side: side.create(name))
    pair.same(lambda side: delete(side, [("never-there", None), ("..", None)]))
    pair.same(lambda side: delete(side, [(None, STRANGE_ID)]))
    pair.same(lambda side: delete(side, [(name, side.ids[name])]))
    pair.same(lambda side: delete(side, [("n1", None), ("n1", None)]))
    pair.same(lambda side: delete(side, []))
    pair.same(lambda side: delete(side, [(None, side.ids[name])]))


@pytest.mark.parametrize("api", ["create", "delete"])
def test_not_the_controller(pair: Pair, api: str) -> None:
    """Brokers forward to the controller only with KRaft: here they say NOT_CONTROLLER."""

    def question(side: Side) -> Any:
        other = side.controller() % 3 + 1
        if api == "create":
            topic = Topic(name="c1", num_partitions=1, replication_factor=1)
            return side.ask(CreateTopicsRequest(topics=[topic], timeout_ms=1000), 7, to=other)
        state = DeleteTopicsRequest.DeleteTopicState(name="c1")
        return side.ask(DeleteTopicsRequest(topics=[state], timeout_ms=1000), 6, to=other)

    pair.same(question)


# -- Metadata -----------------------------------------------------------------------------------


def metadata(side: Side, version: int, topics: Any, *, create_them: bool = False) -> Any:
    request = MetadataRequest(topics=topics, allow_auto_topic_creation=create_them)
    answer = side.ask(request, version)
    if answer != "closed":
        answer["brokers"].sort(key=lambda one: one["host"] + str(one["node_id"]))
        answer["topics"].sort(key=lambda one: one["name"] or "")
        for topic in answer["topics"]:
            topic["partitions"].sort(key=lambda one: one["partition_index"])
    return answer


def named(*names: str | None) -> list[Any]:
    return [MetadataRequest.MetadataRequestTopic(name=name) for name in names]


@pytest.fixture(scope="module")
def spread(pair: Pair) -> str:
    name = pair.name("spread")
    pair.both(lambda side: side.create(name, [(1, 2, 3), (2, 3, 1), (3, 1, 2)]))
    return name


@pytest.mark.parametrize("version", range(13))
def test_metadata(pair: Pair, spread: str, version: int) -> None:
    pair.same(lambda side: metadata(side, version, named(spread)))
    pair.same(lambda side: metadata(side, version, named(spread, spread)))
    if version >= 1:
        pair.same(lambda side: metadata(side, version, []))
    if version >= 4:
        pair.same(lambda side: metadata(side, version, named("never-there", "a b", "", spread)))

    def listed(topics: Any) -> Any:
        def question(side: Side) -> Any:
            answer = metadata(side, version, topics)
            if answer == "closed":
                return answer
            return [one for one in answer["topics"] if one["name"] == spread]

        return question

    pair.same(listed(None if version else []))


def asked(name: str | None, topic_id: UUID | None = None) -> Any:
    extra = {} if topic_id is None else {"topic_id": topic_id}
    return MetadataRequest.MetadataRequestTopic(name=name, **extra)


@pytest.mark.parametrize("version", [10, 11, 12])
def test_metadata_by_id(pair: Pair, spread: str, version: int) -> None:
    pair.same(lambda side: metadata(side, version, [asked(None, side.ids[spread])]))
    pair.same(lambda side: metadata(side, version, [asked(None, STRANGE_ID)]))
    pair.same(lambda side: metadata(side, version, [asked(spread, side.ids[spread])]))
    pair.same(lambda side: metadata(side, version, [asked(spread, STRANGE_ID)]))
    pair.same(lambda side: metadata(side, version, [asked(None)]))


@pytest.mark.parametrize("version", [8, 10, 12])
def test_authorized_operations(pair: Pair, spread: str, version: int) -> None:
    def question(side: Side) -> Any:
        request = MetadataRequest(
            topics=named(spread),
            allow_auto_topic_creation=False,
            include_cluster_authorized_operations=True,
            include_topic_authorized_operations=True,
        )
        answer = side.ask(request, version)
        return [
            answer["cluster_authorized_operations"],
            [one["topic_authorized_operations"] for one in answer["topics"]],
        ]

    pair.same(question)


@pytest.mark.parametrize("version", [0, 3, 4, 12])
def test_a_topic_made_by_asking(pair: Pair, version: int) -> None:
    name = pair.name("by-asking")

    def question(side: Side) -> Any:
        first = metadata(side, version, named(name, "a b"), create_them=True)

        def led() -> bool:
            answer = side.get(MetadataRequest(topics=named(name)), 7).topics[0]
            known = answer.error_code == ErrorCode.NONE
            return known and all(one.leader_id > 0 for one in answer.partitions)

        side.until(led)
        answer = side.get(MetadataRequest(topics=named(name)), 7).topics[0]
        return first["topics"], [len(one.replica_nodes) for one in answer.partitions]

    pair.same(question)


@pytest.mark.parametrize("version", range(2))
@pytest.mark.parametrize("operations", [False, True])
@pytest.mark.parametrize("endpoints", [1, 2, 3])
def test_describe_cluster(pair: Pair, version: int, operations: bool, endpoints: int) -> None:
    request = DescribeClusterRequest(
        include_cluster_authorized_operations=operations, endpoint_type=endpoints
    )

    def question(side: Side) -> Any:
        answer = side.ask(request, version)
        if answer != "closed":
            answer["brokers"].sort(key=lambda one: one["broker_id"])
        return answer

    pair.same(question)


# -- DescribeConfigs ----------------------------------------------------------------------------

OF_THE_NODE = {
    "advertised.listeners", "broker.id", "listeners", "log.dir", "log.dirs", "zookeeper.connect",
    "num.recovery.threads.per.data.dir", "log.cleaner.threads", "urteil.hosts.file",
    "urteil.metrics.listener",
}  # fmt: skip
"""Settings in which the two clusters differ by their own properties."""


def configs(side: Side, version: int, resources: Sequence[Any], *, synonyms: bool = True) -> Any:
    request = DescribeConfigsRequest(resources=resources, include_synonyms=synonyms)
    answer = side.ask(request, version)
    if answer != "closed":
        for result in answer["results"]:
            kept = [one for one in result["configs"] if one["name"] not in OF_THE_NODE]
            result["configs"] = sorted(kept, key=lambda one: one["name"])
    return answer


@pytest.mark.parametrize("version", range(5))
@pytest.mark.parametrize("synonyms", [False, True])
def test_configs_of_a_topic(pair: Pair, version: int, synonyms: bool) -> None:
    name = pair.name("configured")
    given = {"retention.ms": "60000", "cleanup.policy": "compact,delete"}
    pair.both(lambda side: side.create(name, configs=given))
    resource = Resource(resource_type=2, resource_name=name, configuration_keys=None)
    pair.same(lambda side: configs(side, version, [resource], synonyms=synonyms))


@pytest.mark.parametrize("version", [0, 4])
def test_configs_of_a_broker(pair: Pair, version: int) -> None:
    resource = Resource(resource_type=4, resource_name="1", configuration_keys=None)
    pair.same(lambda side: configs(side, version, [resource]))


ODD = {
    "one key": Resource(
        resource_type=4, resource_name="1", configuration_keys=["num.partitions", "no.such"]
    ),
    "no keys": Resource(resource_type=4, resource_name="1", configuration_keys=[]),
    "cluster wide": Resource(resource_type=4, resource_name="", configuration_keys=None),
    "another broker": Resource(resource_type=4, resource_name="2", configuration_keys=None),
    "no broker": Resource(resource_type=4, resource_name="x", configuration_keys=None),
    "no topic": Resource(resource_type=2, resource_name="never-there", configuration_keys=None),
    "bad topic": Resource(resource_type=2, resource_name="a b", configuration_keys=None),
    "empty topic": Resource(resource_type=2, resource_name="", configuration_keys=None),
    "logger": Resource(resource_type=8, resource_name="2", configuration_keys=None),
    "unknown kind": Resource(resource_type=77, resource_name="1", configuration_keys=None),
    "kind 0": Resource(resource_type=0, resource_name="1", configuration_keys=None),
}


@pytest.mark.parametrize("what", ODD)
def test_odd_resources(pair: Pair, what: str) -> None:
    pair.same(lambda side: configs(side, 4, [ODD[what]]))


def test_nothing_and_twice(pair: Pair) -> None:
    pair.same(lambda side: configs(side, 4, []))
    pair.same(lambda side: configs(side, 4, [ODD["one key"], ODD["one key"]]))
