"""Questions about reassignments, elections, client quotas and SCRAM users."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from kafka.protocol.admin import (
    AlterClientQuotasRequest,
    AlterPartitionReassignmentsRequest,
    AlterUserScramCredentialsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeClientQuotasRequest,
    DescribeLogDirsRequest,
    DescribeUserScramCredentialsRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
)

from urteil.harness.conformance.question import (
    BrokerAnswer,
    Brokers,
    Question,
    await_value,
    by_all,
    check,
    name_of,
    names,
)
from urteil.harness.conformance.records import (
    LATEST,
    create_led_topic,
    fetch,
    fetched_partitions,
    make_batch,
    read_epoch_end,
    read_offset,
    write_batches,
)

PREFERRED = 0
NO_BROKER = 99
"""No broker has this id."""
EXACT, CLIENT = 0, "client-id"
RATES = {"producer_byte_rate": 12_345_678.0, "consumer_byte_rate": 23_456_789.0}
SHA_256, ITERATIONS, SALT = 1, 4_096, b"salt"


def reassign(
    brokers: Brokers, topic: str, replicas: Sequence[int] | None, partition: int = 0
) -> int:
    """The error of the partition."""
    kinds = AlterPartitionReassignmentsRequest.ReassignableTopic
    part = kinds.ReassignablePartition(partition_index=partition, replicas=replicas)
    request = AlterPartitionReassignmentsRequest[0](
        timeout_ms=5_000, topics=[kinds(name=topic, partitions=[part])]
    )
    response = brokers.send(brokers.controller, request)
    check("AlterPartitionReassignments", response.error_code)
    return int(response.responses[0].partitions[0].error_code)


def elect(brokers: Brokers, topic: str, partition: int = 0) -> int:
    entry_request = ElectLeadersRequest.TopicPartitions(topic=topic, partitions=[partition])
    request = ElectLeadersRequest[2](
        election_type=PREFERRED, topic_partitions=[entry_request], timeout_ms=5_000
    )
    response = brokers.send(brokers.controller, request)
    check("ElectLeaders", response.error_code)
    return int(response.replica_election_results[0].partition_result[0].error_code)


def _is_in_progress(brokers: Brokers, topic: str) -> bool:
    entry_request = ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics(
        name=topic, partition_indexes=[0]
    )
    request = ListPartitionReassignmentsRequest[0](timeout_ms=5_000, topics=[entry_request])
    response = brokers.send(brokers.controller, request)
    check("ListPartitionReassignments", response.error_code)
    return any(reassigned.name == topic for reassigned in response.topics)


def _elect_rotated(brokers: Brokers, name: str) -> BrokerAnswer:
    """Rotate the replicas and elect the first one: the former leader becomes a follower, and the
    former epoch is fenced."""
    before, after = create_led_topic(brokers, name)
    write_batches(brokers, before, name, make_batch(b"0"))
    results = [elect(brokers, name), reassign(brokers, name, [after, before]), elect(brokers, name)]

    def observe_leader(node: int) -> str:
        (part,) = brokers.metadata(node, name).partitions
        return f"{[part.leader_id, *part.replica_nodes]}"

    node, place = by_all(brokers, observe_leader, str([after, after, before]))
    if place != str([after, after, before]):
        return node, f"{names(results)}, {place}"
    write_batches(brokers, after, name, make_batch(b"1"))
    errors = [
        read_offset(brokers, before, name, LATEST).error_code,
        read_offset(brokers, after, name, LATEST, epoch=0).error_code,
        read_epoch_end(brokers, after, name, 0, current=0).error_code,
        fetched_partitions(fetch(brokers, after, name, {0: 0}, epoch=0))[0].error_code,
    ]
    end = read_epoch_end(brokers, after, name, 0)
    return after, f"{names(results)}, {names(errors)}, {end.leader_epoch}:{end.end_offset}"


def _reassign_invalid(brokers: Brokers, name: str) -> BrokerAnswer:
    leader, _ = create_led_topic(brokers, name)
    results = [
        reassign(brokers, name, [leader, NO_BROKER]),
        reassign(brokers, name, [leader, leader]),
        reassign(brokers, name, None),
        reassign(brokers, f"{name}-never", [leader]),
        elect(brokers, f"{name}-never"),
    ]
    return brokers.controller, names(results)


def _move_replica(brokers: Brokers, name: str) -> BrokerAnswer:
    """A replica moves to another broker, which then has it in its log directories."""
    leader, follower = create_led_topic(brokers, name)
    (other,) = set(brokers.nodes) - {leader, follower}
    write_batches(brokers, leader, name, make_batch(b"x" * 1_000))
    check("AlterPartitionReassignments", reassign(brokers, name, [leader, other]))
    expected = str([[leader, other], sorted([leader, other])])

    def check_placement(node: int) -> str:
        (part,) = brokers.metadata(node, name).partitions
        return str([list(part.replica_nodes), sorted(part.isr_nodes)])

    node, result = by_all(brokers, check_placement, expected)
    if result != expected:
        return node, f"{result} instead of {expected}"
    ended = await_value(brokers, lambda: str(_is_in_progress(brokers, name)), "False")

    def sizes() -> str:
        return str(
            [_bytes_on_disk(brokers, node, name) > 1_000 for node in (leader, other, follower)]
        )

    return brokers.controller, f"{ended}, {await_value(brokers, sizes, ON_DISK)}"


ON_DISK = str([True, True, False])


def _bytes_on_disk(brokers: Brokers, node: int, topic: str) -> int:
    """The size of partition 0 in the broker's log directories; -1 if there is none."""
    request = DescribeLogDirsRequest.DescribableLogDirTopic(topic=topic, partitions=[0])
    response = brokers.send(node, DescribeLogDirsRequest[4](topics=[request]))
    check("DescribeLogDirs", response.error_code)
    sizes = [
        part.partition_size
        for folder in response.results
        for reassigned in folder.topics
        if reassigned.name == topic
        for part in reassigned.partitions
    ]
    return max(sizes, default=-1)


def _create_and_delete(brokers: Brokers, name: str) -> BrokerAnswer:
    """The response of a creation agrees with what all brokers report; then the topic is deleted by
    its id."""
    kinds = CreateTopicsRequest.CreatableTopic
    entry_request = kinds(
        name=name, num_partitions=2, replication_factor=3, assignments=[],
        configs=[kinds.CreatableTopicConfig(name="retention.ms", value="123456")],
    )  # fmt: skip
    request = CreateTopicsRequest[7](topics=[entry_request], timeout_ms=5_000, validate_only=False)
    (made,) = brokers.send(brokers.controller, request).topics
    check("CreateTopics", made.error_code)
    values = {config.name: config.value for config in made.configs or ()}
    counts = [made.num_partitions, made.replication_factor, values.get("retention.ms")]

    def observe_leader(node: int) -> str:
        return str(brokers.metadata(node, name, version=10).topic_id)

    node, known = by_all(brokers, observe_leader, str(made.topic_id))
    if known != str(made.topic_id):
        return node, f"{known} instead of {made.topic_id}"
    topic_request = DeleteTopicsRequest.DeleteTopicState(name=None, topic_id=made.topic_id)
    request = DeleteTopicsRequest[6](topics=[topic_request], timeout_ms=5_000)
    (deleted,) = brokers.send(brokers.controller, request).responses
    text = f"{counts}, {name_of(deleted.error_code)} {deleted.name == name}"
    node, after = by_all(
        brokers, lambda node: name_of(brokers.metadata(node, name).error_code), GONE
    )
    return node, f"{text}, {after}"


GONE = "UnknownTopicOrPartition"


def _alter_quotas(
    brokers: Brokers, client: str, changes: Mapping[str, float | None], *, tried: bool = False
) -> int:
    kinds = AlterClientQuotasRequest.EntryData
    entry_request = kinds(
        entity=[kinds.EntityData(entity_type=CLIENT, entity_name=client)],
        ops=[
            kinds.OpData(key=key, value=value or 0.0, remove=value is None)
            for key, value in changes.items()
        ],
    )
    request = AlterClientQuotasRequest[0](entries=[entry_request], validate_only=tried)
    return int(brokers.send(brokers.controller, request).entries[0].error_code)


def _quotas_of(brokers: Brokers, node: int, client: str) -> str:
    kinds = DescribeClientQuotasRequest
    request = kinds.ComponentData(entity_type=CLIENT, match_type=EXACT, match=client)
    response = brokers.send(node, kinds[0](components=[request], strict=True))
    check("DescribeClientQuotas", response.error_code)
    return str(sorted((v.key, v.value) for entry in response.entries or () for v in entry.values))


def _set_quotas(brokers: Brokers, name: str) -> BrokerAnswer:
    """Two quotas that are set, one that is taken back, and what is tried or is none."""
    check("AlterClientQuotas", _alter_quotas(brokers, name, RATES))
    first, second = sorted(RATES)
    check("AlterClientQuotas", _alter_quotas(brokers, name, {second: None}, tried=True))
    node, both = by_all(
        brokers, lambda node: _quotas_of(brokers, node, name), str(sorted(RATES.items()))
    )
    errors = names([_alter_quotas(brokers, name, {"bytes": 1.0})])
    check("AlterClientQuotas", _alter_quotas(brokers, name, {second: None}))
    left = str([(first, RATES[first])])
    node, result = by_all(brokers, lambda node: _quotas_of(brokers, node, name), left)
    check("AlterClientQuotas", _alter_quotas(brokers, name, {first: None}))
    return node, f"{both}, {errors}, {result}"


def _set_scram_user(brokers: Brokers, name: str) -> BrokerAnswer:
    """All brokers know a user's SCRAM credential until it is deleted (KIP-554)."""
    kinds: Any = AlterUserScramCredentialsRequest
    salted = hashlib.pbkdf2_hmac("sha256", name.encode(), SALT, ITERATIONS)
    given = kinds.ScramCredentialUpsertion(
        name=name, mechanism=SHA_256, iterations=ITERATIONS, salt=SALT, salted_password=salted
    )
    taken = kinds.ScramCredentialDeletion(name=name, mechanism=SHA_256)

    def alter(deletions: Sequence[Any], upsertions: Sequence[Any]) -> int:
        request = kinds[0](deletions=deletions, upsertions=upsertions)
        return int(brokers.send(brokers.controller, request).results[0].error_code)

    def observe(node: int) -> str:
        request = DescribeUserScramCredentialsRequest.UserName(name=name)
        answer = brokers.send(node, DescribeUserScramCredentialsRequest[0](users=[request]))
        (user,) = answer.results
        known = [[each.mechanism, each.iterations] for each in user.credential_infos or ()]
        return f"{name_of(user.error_code)} {known}"

    check("AlterUserScramCredentials", alter([], [given]))
    node, known = by_all(brokers, observe, KNOWN)
    if known != KNOWN:
        return node, known
    errors = names([alter([taken], []), alter([taken], [])])
    node, after = by_all(brokers, observe, "ResourceNotFound []")
    return node, f"{known}, {errors}, {after}"


KNOWN = f"No [[{SHA_256}, {ITERATIONS}]]"

REASSIGNMENTS = (
    Question(
        about="election of a leader that is preferred, and of one that is not any more (KIP-460)",
        answer="ElectionNotNeeded, No, No, NotLeaderForPartition, FencedLeaderEpoch, "
        "FencedLeaderEpoch, FencedLeaderEpoch, 0:1",
        ask=_elect_rotated,
    ),
    Question(
        about="reassignment to an unknown broker, twice to one broker, cancellation "
        "without a move, and "
        "reassignment and election of a missing topic (KIP-455)",
        answer="InvalidReplicationAssignment, InvalidReplicationAssignment, "
        "NoReassignmentInProgress, "
        "UnknownTopicOrPartition, UnknownTopicOrPartition",
        ask=_reassign_invalid,
    ),
    Question(
        about="a replica that moves, and the log directories that hold it",
        answer=f"False, {ON_DISK}",
        ask=_move_replica,
    ),
    Question(
        about="the responses for a topic that is created, and deleted by its id",
        answer="[2, 3, '123456'], No True, UnknownTopicOrPartition",
        ask=_create_and_delete,
    ),
    Question(
        about="quotas that are set and removed, at all brokers (KIP-546)",
        answer=f"{sorted(RATES.items())}, InvalidRequest, "
        f"{[('consumer_byte_rate', RATES['consumer_byte_rate'])]}",
        ask=_set_quotas,
    ),
    Question(
        about="a user's SCRAM credential and its removal, at all brokers",
        answer=f"{KNOWN}, No, ResourceNotFound, ResourceNotFound []",
        ask=_set_scram_user,
    ),
)
