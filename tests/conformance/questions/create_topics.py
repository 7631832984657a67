"""CreateTopics: what is made, and what is refused and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.conformance.questions.registry import Asker, Subject
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.messages import CreateTopicsRequest

CREATE = Subject("CreateTopics", ApiKey.CREATE_TOPICS)

Topic = CreateTopicsRequest.CreatableTopic
Replicas = CreateTopicsRequest.CreatableReplicaAssignment
Config = CreateTopicsRequest.CreatableTopicConfig


def counted_topic(name: str, partitions: int, replicas: int, **configs: str | None) -> Any:
    given = [Config(name=key.replace("_", "."), value=value) for key, value in configs.items()]
    return Topic(name=name, num_partitions=partitions, replication_factor=replicas, configs=given)


def assigned_topic(name: str, *replicas: Sequence[int], at: Sequence[int] | None = None) -> Any:
    given = [
        Replicas(partition_index=index, broker_ids=list(ids))
        for index, ids in zip(at or range(len(replicas)), replicas, strict=True)
    ]
    return Topic(name=name, num_partitions=-1, replication_factor=-1, assignments=given)


def create(asker: Asker, topics: Sequence[Any], *, validate_only: bool = False) -> Any:
    request = CreateTopicsRequest(topics=topics, timeout_ms=10_000, validate_only=validate_only)
    return asker.ask_controller(request)


@CREATE.question("made, and made again", versions=range(8))
def created_topics(asker: Asker) -> Any:
    names = [asker.name("one"), asker.name("two")]
    placed = assigned_topic(names[1], (1, 2), (3, 1))
    configs = [
        Config(name="retention.ms", value="60000"),
        Config(name="cleanup.policy", value="compact"),
    ]
    placed = Topic(
        name=names[1],
        num_partitions=-1,
        replication_factor=-1,
        assignments=placed.assignments,
        configs=configs,
    )
    return [
        create(asker, [counted_topic(names[0], 2, 3), placed]),
        create(asker, [counted_topic(names[0], 1, 1)]),
    ]


REFUSED: dict[str, list[Any]] = {
    "no name": [counted_topic("", 1, 1)],
    "dot": [counted_topic(".", 1, 1)],
    "two dots": [counted_topic("..", 1, 1)],
    "bad letters": [counted_topic("a b", 1, 1)],
    "250 letters": [counted_topic("x" * 250, 1, 1)],
    "249 letters": [counted_topic("x" * 249, 1, 1)],
    "too many replicas": [counted_topic("c1", 1, 4)],
    "no replicas": [counted_topic("c1", 1, 0)],
    "minus two replicas": [counted_topic("c1", 1, -2)],
    "no partitions": [counted_topic("c1", 0, 1)],
    "minus two partitions": [counted_topic("c1", -2, 1)],
    "unknown broker": [assigned_topic("c1", (9,))],
    "broker -1": [assigned_topic("c1", (-1,))],
    "replicas twice": [assigned_topic("c1", (1, 1))],
    "uneven replicas": [assigned_topic("c1", (1, 2), (3,))],
    "no replicas assigned": [assigned_topic("c1", ())],
    "assignment and count": [
        Topic(name="c1", num_partitions=1, replication_factor=-1,
              assignments=assigned_topic("c1", (1,)).assignments)
    ],
    "assignment and factor": [
        Topic(name="c1", num_partitions=-1, replication_factor=1,
              assignments=assigned_topic("c1", (1,)).assignments)
    ],
    "partitions with a gap": [assigned_topic("c1", (1,), (2,), at=(0, 2))],
    "not from 0": [assigned_topic("c1", (1,), at=(1,))],
    "partition twice": [assigned_topic("c1", (1,), (2,), at=(0, 0))],
    "topic twice": [
        counted_topic("c1", 1, 1), counted_topic("c1", 2, 1), counted_topic("c2", 0, 1),
    ],
    "topic twice, both alike": [counted_topic("c1", 1, 1), counted_topic("c1", 1, 1)],
    "unknown config": [counted_topic("c1", 1, 1, no_such_config="1")],
    "bad config value": [counted_topic("c1", 1, 1, retention_ms="soon")],
    "empty config value": [counted_topic("c1", 1, 1, retention_ms="")],
    "config out of range": [counted_topic("c1", 1, 1, segment_bytes="1")],
    "null config value": [counted_topic("c1", 1, 1, retention_ms=None)],
    "bad policy": [counted_topic("c1", 1, 1, cleanup_policy="hoard")],
    "two policies": [counted_topic("c1", 1, 1, cleanup_policy="compact,delete")],
    "bad throttle": [counted_topic("c1", 1, 1, leader_replication_throttled_replicas="x")],
    "codec nobody knows": [counted_topic("c1", 1, 1, compression_type="rar")],
    "message format": [counted_topic("c1", 1, 1, message_format_version="0.9.0")],
    "fine": [counted_topic("c1", 3, 2)],
    "fine with config": [counted_topic("c1", 3, 2, compression_type="gzip")],
    "fine by assignment": [assigned_topic("c1", (1, 2), (3, 1))],
    "internal name": [counted_topic("__transaction_state_x", 1, 1)],
    "nothing": [],
}  # fmt: skip


@CREATE.each("asked only", REFUSED, since=1)
def rejected_topics(asker: Asker, topics: list[Any]) -> Any:
    return create(asker, topics, validate_only=True)


@CREATE.question("defaults of the broker", since=1)
def defaults(asker: Asker) -> Any:
    return create(
        asker, [Topic(name="c1", num_partitions=-1, replication_factor=-1)], validate_only=True
    )


@CREATE.question("a name that collides in metrics")
def colliding(asker: Asker) -> Any:
    name = asker.topic(kind="a.b")
    return create(asker, [counted_topic(name.replace("a.b", "a_b"), 1, 1)])


@CREATE.question("asked of another broker than the controller")
def elsewhere(asker: Asker) -> Any:
    """Brokers forward to the controller only with KRaft: here they say NOT_CONTROLLER."""
    topics = [counted_topic("c1", 1, 1)]
    other = asker.side.controller() % 3 + 1
    return asker.ask(CreateTopicsRequest(topics=topics, timeout_ms=1000), to=other)
