"""Questions about topics and settings, to the controller and to all brokers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kafka.protocol.admin import (
    CreatePartitionsRequest,
    DeleteTopicsRequest,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
)

from urteil.harness.conformance.group_member import NO_POSITIONS, member
from urteil.harness.conformance.question import (
    GROUP,
    TRANSACTIONAL_ID,
    BrokerAnswer,
    Brokers,
    Question,
    await_value,
    by_all,
    check,
    name_of,
    names,
)
from urteil.harness.conformance.required_settings import LIMITS

OF_TOPIC, OF_BROKER = 2, 4
BY_TOPIC, BY_ALL, BY_FILE, BY_DEFAULT = 1, 3, 4, 5
"""Sources of a value (`DescribeConfigsResponse.ConfigSource`)."""
SET, DELETE, APPEND, SUBTRACT = range(4)
KEPT_MS, LARGEST = "123456789", "54321"


def check_placement(
    brokers: Brokers, topic: str, expected: Sequence[Sequence[int]]
) -> BrokerAnswer:
    def observe(node: int) -> str:
        results = [
            [
                partition.leader_id,
                *partition.replica_nodes,
                *sorted(partition.isr_nodes),
                *partition.offline_replicas,
            ]
            for partition in sorted(
                brokers.metadata(node, topic).partitions,
                key=lambda partition: int(partition.partition_index),
            )
        ]
        requests = [[ids[0], *ids, *sorted(ids)] for ids in expected]
        return "as asked for" if results == requests else f"{results} for {requests}"

    return by_all(brokers, observe, "as asked for")


def _create_assigned(brokers: Brokers, name: str) -> BrokerAnswer:
    nodes = brokers.nodes
    assigned = [[*nodes[at:], *nodes[:at]] for at in range(len(nodes))]
    brokers.create(name, assigned)
    return check_placement(brokers, name, assigned)


def _create_spread(brokers: Brokers, name: str) -> BrokerAnswer:
    """As many partitions as brokers: each broker leads one and follows one."""
    count = len(brokers.nodes)
    check("CreateTopics", brokers.create_errors(name, partitions=count, replication=2)[0])

    def observe(node: int) -> str:
        results = [
            list(partition.replica_nodes) for partition in brokers.metadata(node, name).partitions
        ]
        columns = [sorted(column) for column in zip(*results, strict=True)]
        return "one each" if columns == [brokers.nodes] * 2 else str(results)

    return by_all(brokers, observe, "one each")


def _create_invalid(brokers: Brokers, name: str) -> BrokerAnswer:
    brokers.create(name, [[brokers.nodes[0]]])
    count = len(brokers.nodes)
    results = [
        *brokers.create_errors(name, partitions=1, replication=1),
        *brokers.create_errors(f"{name}-a", partitions=1, replication=count + 1),
        *brokers.create_errors(f"{name}-b", partitions=0, replication=1),
        *brokers.create_errors(f"{name}-c", partitions=1, replication=1, retention_ms="long"),
        *brokers.create_errors(f"{name}/d", partitions=1, replication=1),
    ]
    return brokers.controller, names(results)


def _validate_creation(brokers: Brokers, name: str) -> BrokerAnswer:
    tried = brokers.create_errors(name, partitions=1, replication=1, validate=True)
    check("CreateTopics", tried[0])
    there = brokers.create_errors(name, partitions=1, replication=1, validate=True)
    return brokers.controller, names(there)


def _delete_topic(brokers: Brokers, name: str) -> BrokerAnswer:
    brokers.create(name, [brokers.nodes])
    request = DeleteTopicsRequest[4](topic_names=[name, f"{name}-never"], timeout_ms=5_000)
    by_name = {
        result.name: result.error_code
        for result in brokers.send(brokers.controller, request).responses
    }
    errors = names([by_name[name], by_name[f"{name}-never"]])
    answer = f"{errors}, then UnknownTopicOrPartition"

    def deletion_answer(node: int) -> str:
        return f"{errors}, then {name_of(brokers.metadata(node, name).error_code)}"

    return by_all(brokers, deletion_answer, answer)


def _add_partitions(brokers: Brokers, name: str) -> BrokerAnswer:
    nodes = brokers.nodes
    expected = [nodes[:2], [nodes[2], nodes[1]], [nodes[1], nodes[0]]]  # none as it would be else
    brokers.create(name, expected[:1])
    kinds = CreatePartitionsRequest.CreatePartitionsTopic

    def entry_request(count: int, given: Sequence[Sequence[int]] | None) -> int:
        placed = given and [kinds.CreatePartitionsAssignment(broker_ids=list(ids)) for ids in given]
        request = CreatePartitionsRequest[1](
            topics=[kinds(name=name, count=count, assignments=placed)],
            timeout_ms=5_000, validate_only=False,
        )  # fmt: skip
        (entry,) = brokers.send(brokers.controller, request).results
        return int(entry.error_code)

    check("CreatePartitions", entry_request(3, expected[1:]))
    fewer = name_of(entry_request(2, None))
    node, result = check_placement(brokers, name, expected)
    return node, f"{result}, {fewer}"


def read_configs(brokers: Brokers, node: int, kind: int, name: str, keys: Sequence[str]) -> str:
    entry_request = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=list(keys)
    )
    request = DescribeConfigsRequest[1](resources=[entry_request], include_synonyms=False)
    (result,) = brokers.send(node, request).results
    check("DescribeConfigs", result.error_code)
    by_name = {config.name: config for config in result.configs}
    return ", ".join(f"{by_name[key].value} by {by_name[key].config_source}" for key in keys)


def _describe_configs(brokers: Brokers, name: str) -> BrokerAnswer:
    brokers.create(name, [brokers.nodes], retention_ms=KEPT_MS, max_message_bytes=LARGEST)
    keys = ("retention.ms", "max.message.bytes", "cleanup.policy")
    return by_all(brokers, lambda node: read_configs(brokers, node, OF_TOPIC, name, keys), SETTINGS)


SETTINGS = f"{KEPT_MS} by {BY_TOPIC}, {LARGEST} by {BY_TOPIC}, delete by {BY_DEFAULT}"


def _alter_lists(brokers: Brokers, name: str) -> BrokerAnswer:
    """Values that are appended to a list and subtracted from it; a value that is reset."""
    brokers.create(name, [brokers.nodes], retention_ms=KEPT_MS)
    alter(brokers, name, ("cleanup.policy", APPEND, "compact"), ("retention.ms", DELETE, None))
    node, added = by_all(
        brokers, lambda node: read_configs(brokers, node, OF_TOPIC, name, ["cleanup.policy"]), ADDED
    )
    if added != ADDED:
        return node, added
    alter(brokers, name, ("cleanup.policy", SUBTRACT, "compact"), ("max.message.bytes", SET, "9"))
    keys = ("cleanup.policy", "max.message.bytes")

    def observe(node: int) -> str:
        result = read_configs(brokers, node, OF_TOPIC, name, keys)
        return f"{result}, {read_configs(brokers, node, OF_TOPIC, name, ['retention.ms'])[-1]}"

    return by_all(brokers, observe, CHANGED)


ADDED = f"delete,compact by {BY_TOPIC}"
CHANGED = f"delete by {BY_TOPIC}, 9 by {BY_TOPIC}, {BY_DEFAULT}"


def alter(
    brokers: Brokers, name: str, *changes: tuple[str, int, str | None], kind: int = OF_TOPIC
) -> None:
    kinds: Any = IncrementalAlterConfigsRequest.AlterConfigsResource
    entry_request = kinds(
        resource_type=kind, resource_name=name,
        configs=[
            kinds.AlterableConfig(name=key, config_operation=operation, value=value)
            for key, operation, value in changes
        ],
    )  # fmt: skip
    request = IncrementalAlterConfigsRequest[0](resources=[entry_request], validate_only=False)
    (result,) = brokers.send(brokers.controller, request).responses
    check("IncrementalAlterConfigs", result.error_code)


def _recreate_topic(brokers: Brokers, name: str) -> BrokerAnswer:
    """Settings and committed offsets of a topic that was deleted and created again."""
    brokers.create(name, [brokers.nodes], retention_ms=KEPT_MS)
    group = member(brokers, name)
    check("OffsetCommit", group.commit(name, {0: 17})[0])
    request = DeleteTopicsRequest[4](topic_names=[name], timeout_ms=5_000)
    check("DeleteTopics", brokers.send(brokers.controller, request).responses[0].error_code)
    if await_value(brokers, group.positions, NO_POSITIONS) != NO_POSITIONS:
        return group.node, group.positions()
    await_value(
        brokers, lambda: names(brokers.create_errors(name, partitions=1, validate=True)), "No"
    )
    brokers.create(name, [brokers.nodes])
    return by_all(
        brokers,
        lambda node: read_configs(brokers, node, OF_TOPIC, name, ["retention.ms"])[-1],
        ANEW,
    )


ANEW = str(BY_DEFAULT)


def _recreate_name_with_periods(brokers: Brokers, name: str) -> BrokerAnswer:
    """Names that differ only in periods and underscores collide, as long as both topics exist."""
    dotted = f"{name}.of.periods"
    brokers.create(dotted, [brokers.nodes])
    errors = brokers.create_errors(dotted.replace(".", "_"), partitions=1, replication=1)
    request = DeleteTopicsRequest[4](topic_names=[dotted], timeout_ms=5_000)
    check("DeleteTopics", brokers.send(brokers.controller, request).responses[0].error_code)
    created = await_value(
        brokers, lambda: names(brokers.create_errors(dotted, partitions=1, replication=1)), "No"
    )
    return brokers.controller, f"{names(errors)}, then {created}"


def _describe_internal_topics(brokers: Brokers, name: str) -> BrokerAnswer:
    """The internal topics are compacted, with the configured number of in-sync replicas."""
    for kind in (GROUP, TRANSACTIONAL_ID):
        brokers.coordinator(name, kind)  # which makes them

    def observe(node: int) -> str:
        kept = [
            read_configs(brokers, node, OF_TOPIC, topic, ["cleanup.policy"]) for topic in INTERNAL
        ]
        expected = read_configs(
            brokers, node, OF_BROKER, str(node), ["transaction.state.log.min.isr"]
        )
        result = read_configs(brokers, node, OF_TOPIC, INTERNAL[1], ["min.insync.replicas"])
        same = result.split()[0] == expected.split()[0]
        return f"{', '.join(kept)}, {'as set' if same else result}"

    return by_all(brokers, observe, KEPT)


INTERNAL = ("__consumer_offsets", "__transaction_state")
KEPT = f"compact by {BY_TOPIC}, compact by {BY_TOPIC}, as set"


def _alter_default(brokers: Brokers, name: str) -> BrokerAnswer:
    """A default setting of all brokers, and its removal (KIP-226)."""
    alter(brokers, "", (OF_ALL, SET, "11"), kind=OF_BROKER)

    def observe(node: int) -> str:
        return read_configs(brokers, node, OF_BROKER, str(node), [OF_ALL])

    result = by_all(brokers, observe, f"11 by {BY_ALL}")
    alter(brokers, "", (OF_ALL, DELETE, None), kind=OF_BROKER)
    return result


OF_ALL = "background.threads"


def _describe_brokers(brokers: Brokers, name: str) -> BrokerAnswer:
    return by_all(
        brokers, lambda node: read_configs(brokers, node, OF_BROKER, str(node), list(LIMITS)), OWN
    )


OWN = ", ".join(f"{value} by {BY_FILE}" for value in LIMITS.values())


def _describe_cluster(brokers: Brokers, name: str) -> BrokerAnswer:
    first = brokers.send(brokers.nodes[0], DescribeClusterRequest[0]())

    def observe(node: int) -> str:
        response = brokers.send(node, DescribeClusterRequest[0]())
        known = sorted(broker.broker_id for broker in response.brokers) == brokers.nodes
        same = (response.cluster_id, response.controller_id) == (
            first.cluster_id,
            first.controller_id,
        )
        return "one cluster" if known and same else str(response)

    return by_all(brokers, observe, "one cluster")


TOPICS = (
    Question(
        about="replicas of an explicit assignment, at all brokers",
        answer="as asked for",
        ask=_create_assigned,
    ),
    Question(
        about="the placement of as many partitions with two replicas as there are brokers",
        answer="one each",
        ask=_create_spread,
    ),
    Question(
        about="creation of an existing topic, with too many replicas, no partition, an invalid "
        "setting, an invalid name",
        answer="TopicAlreadyExists, InvalidReplicationFactor, InvalidPartitions, "
        "InvalidConfiguration, InvalidTopic",
        ask=_create_invalid,
    ),
    Question(about="whether validate_only creates a topic", answer="No", ask=_validate_creation),
    Question(
        about="a deleted topic, at all brokers",
        answer="No, UnknownTopicOrPartition, then UnknownTopicOrPartition",
        ask=_delete_topic,
    ),
    Question(
        about="partitions that are added with an assignment, and fewer partitions",
        answer="as asked for, InvalidPartitions",
        ask=_add_partitions,
    ),
    Question(
        about="DescribeConfigs of a topic, at all brokers", answer=SETTINGS, ask=_describe_configs
    ),
    Question(
        about="IncrementalAlterConfigs of a topic, at all brokers", answer=CHANGED, ask=_alter_lists
    ),
    Question(about="DescribeConfigs of each broker", answer=OWN, ask=_describe_brokers),
    Question(
        about="a default setting of all brokers, at each broker",
        answer=f"11 by {BY_ALL}",
        ask=_alter_default,
    ),
    Question(
        about="cleanup.policy and min.insync.replicas of the internal topics",
        answer=KEPT,
        ask=_describe_internal_topics,
    ),
    Question(
        about="settings and committed offsets of a topic that was created again",
        answer=ANEW,
        ask=_recreate_topic,
    ),
    Question(
        about="creation of a topic whose name collides with another one, and of that one again, "
        "after it was deleted",
        answer="InvalidTopic, then No",
        ask=_recreate_name_with_periods,
    ),
    Question(about="DescribeCluster, at all brokers", answer="one cluster", ask=_describe_cluster),
)
