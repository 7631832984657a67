"""Questions about the versions of requests, metadata and coordinators, and the order of
responses."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from kafka.protocol.admin import DescribeGroupsRequest
from kafka.protocol.consumer import FetchRequest, ListOffsetsRequest, OffsetFetchRequest
from kafka.protocol.metadata import ApiVersionsRequest, FindCoordinatorRequest, MetadataRequest
from kafka.protocol.producer import ProduceRequest

from urteil.harness.conformance.group_member import member
from urteil.harness.conformance.question import (
    GROUP,
    BrokerAnswer,
    Brokers,
    Question,
    by_all,
    check,
    name_of,
    names,
)
from urteil.harness.conformance.records import (
    LATEST,
    MOST,
    WAIT_MS,
    create_led_topic,
    fetched_partitions,
    make_batch,
    produce,
    produced_partition,
    write_batches,
)
from urteil.harness.protocol.framing import encode_request

ASKED = range(4, 13)
"""Versions of Metadata that create no topic."""
PRODUCED, FETCHED = range(3, 12), range(4, 13)
"""Versions of Produce and Fetch with record batches, the latter with topic names."""
API_VERSIONS, NEVER, NO_TAGS = 18, 99, b"\0"
"""The key of ApiVersions, an unknown version, and the tagged fields of its header."""
OF_NOTHING = 9
"""An invalid type of coordinator keys."""


def _read_response_order(brokers: Brokers, name: str) -> BrokerAnswer:
    """A fetch that waits, then one that does not, on one connection."""
    leader, _ = create_led_topic(brokers, name)
    kinds = FetchRequest
    part = kinds.FetchTopic.FetchPartition(
        partition=0, current_leader_epoch=-1, fetch_offset=0, log_start_offset=-1,
        partition_max_bytes=MOST,
    )  # fmt: skip
    waiting, quick = (
        kinds[11](
            replica_id=-1, max_wait_ms=wait_ms, min_bytes=1, max_bytes=MOST, isolation_level=0,
            session_id=0, session_epoch=-1, forgotten_topics_data=[], rack_id="",
            topics=[kinds.FetchTopic(topic=name, partitions=[part])],
        )
        for wait_ms in (WAIT_MS, 0)
    )  # fmt: skip
    return leader, str(brokers.order(leader, [waiting, quick, waiting]))


def _read_offered_versions(brokers: Brokers, name: str) -> BrokerAnswer:
    """All brokers offer the same versions, including these. A request in an unknown version gets
    the offered one (KIP-511)."""

    def observe(node: int) -> str:
        answer = brokers.send(node, ApiVersionsRequest[0]())
        check("ApiVersions", answer.error_code)
        offered = {
            api_key.api_key: (api_key.min_version, api_key.max_version)
            for api_key in answer.api_keys
        }
        lacking = [
            kind.__name__
            for kind, version in NEEDED
            if not offered[kind.API_KEY][0] <= version <= offered[kind.API_KEY][1]
        ]
        return f"{lacking} {hash(frozenset(offered.items())) & 0xFFFF}"

    node = brokers.nodes[0]
    first = observe(node)
    node, result = by_all(brokers, observe, first)
    data = brokers.raw(node, encode_request((API_VERSIONS, NEVER), 1, NO_TAGS))
    error, entries, key = struct.unpack_from(">hih", data, 4)
    refused = f"{name_of(error)} {entries} of {key}"
    return node, f"{first.split()[0]}, {'the same' if result == first else 'others'}, {refused}"


NEEDED: Sequence[tuple[Any, int]] = (
    (ProduceRequest, 11),
    (FetchRequest, 17),
    (ListOffsetsRequest, 9),
    (MetadataRequest, 12),
    (OffsetFetchRequest, 9),
    (FindCoordinatorRequest, 6),
    (DescribeGroupsRequest, 5),
)


def _read_metadata(brokers: Brokers, name: str) -> BrokerAnswer:
    """One topic in all versions; all topics; none."""
    leader, follower = create_led_topic(brokers, name, 2)
    expected = [[p, leader, [leader, follower], [leader, follower]] for p in range(2)]

    def observe(node: int) -> str:
        for version in ASKED:
            partitions = brokers.metadata(node, name, version=version).partitions
            results = [
                [
                    partition.partition_index,
                    partition.leader_id,
                    list(partition.replica_nodes),
                    sorted(partition.isr_nodes),
                ]
                for partition in sorted(
                    partitions, key=lambda partition: int(partition.partition_index)
                )
            ]
            if results != expected:
                return f"{results} in version {version}"
        known = {topic.name for topic in brokers.send(node, _metadata_request(None)).topics}
        return f"{name in known} {len(brokers.send(node, _metadata_request([])).topics)}"

    return by_all(brokers, observe, "True 0")


def _metadata_request(topics: Sequence[Any] | None) -> Any:
    return MetadataRequest[7](topics=topics, allow_auto_topic_creation=False)


def _find_several_coordinators(brokers: Brokers, name: str) -> BrokerAnswer:
    """The coordinators of several keys at once (KIP-699), and of an invalid key type."""
    keys = [f"{name}-{number}" for number in range(4)]
    node = brokers.nodes[0]

    def entry_request(kind: int) -> dict[str, Any]:
        request = FindCoordinatorRequest[4](key_type=kind, coordinator_keys=keys)
        return {
            coordinator.key: coordinator for coordinator in brokers.send(node, request).coordinators
        }

    result = entry_request(GROUP)
    check("FindCoordinator", max(coordinator.error_code for coordinator in result.values()))
    same = all(result[key].node_id == brokers.coordinator(key) for key in keys)
    errors = names(coordinator.error_code for coordinator in entry_request(OF_NOTHING).values())
    return node, f"{'as one by one' if same else 'elsewhere'}, {errors}"


def _read_ends(brokers: Brokers, name: str) -> BrokerAnswer:
    """A partition's end in all versions of ListOffsets."""
    leader, _ = create_led_topic(brokers, name)
    write_batches(brokers, leader, name, make_batch(b"0", b"1", b"2"))
    kinds = ListOffsetsRequest.ListOffsetsTopic
    results = []
    for version in range(1, 10):
        part = kinds.ListOffsetsPartition(
            partition_index=0, current_leader_epoch=-1, timestamp=LATEST
        )
        request = ListOffsetsRequest[version](
            replica_id=-1, isolation_level=0, topics=[kinds(name=name, partitions=[part])]
        )
        answer = brokers.send(leader, request).topics[0].partitions[0]
        results.append(answer.offset if not answer.error_code else name_of(answer.error_code))
    return leader, str(sorted(set(map(str, results))))


def _produce_and_fetch(brokers: Brokers, name: str) -> BrokerAnswer:
    """A record in each version of Produce, and all of them in each version of Fetch with topic
    names."""
    leader, _ = create_led_topic(brokers, name)
    results = []
    for version in PRODUCED:
        answer = produce(brokers, leader, name, 0, make_batch(b"0"), version=version)
        part = produced_partition(answer)
        results.append(name_of(part.error_code) if part.error_code else str(part.base_offset))
    kinds = FetchRequest
    sizes = set()
    for version in FETCHED:
        part = kinds.FetchTopic.FetchPartition(
            partition=0, current_leader_epoch=-1, fetch_offset=0, last_fetched_epoch=-1,
            log_start_offset=-1, partition_max_bytes=MOST,
        )  # fmt: skip
        request = kinds[version](
            replica_id=-1, max_wait_ms=0, min_bytes=1, max_bytes=MOST, isolation_level=0,
            session_id=0, session_epoch=-1, forgotten_topics_data=[], rack_id="",
            topics=[kinds.FetchTopic(topic=name, partitions=[part])],
        )  # fmt: skip
        (read,) = fetched_partitions(brokers.send(leader, request))
        sizes.add(len(read.records or b"") // len(make_batch(b"0")))
    return leader, f"{' '.join(results)}, {sizes}"


def _read_committed_offsets(brokers: Brokers, name: str) -> BrokerAnswer:
    """An existing and a missing committed offset, in all versions of OffsetFetch except
    the first."""
    brokers.create(name, [[brokers.nodes[0]]] * 2)
    committer = member(brokers, name)
    check("OffsetCommit", committer.commit(name, {0: 17})[0])
    results = set()
    for version in range(1, 10):
        for topic in _topics_of(
            committer.send(_offset_fetch_request(name, version)), version, name
        ):
            results.add(
                str(sorted((p.partition_index, p.committed_offset) for p in topic.partitions))
            )
    return committer.node, " ".join(sorted(results))


def _offset_fetch_request(name: str, version: int) -> Any:
    kinds = OffsetFetchRequest
    if version < 8:
        topic = kinds.OffsetFetchRequestTopic(name=name, partition_indexes=[0, 1])
        return kinds[version](group_id=name, topics=[topic], require_stable=False)
    topics = [kinds.OffsetFetchRequestGroup.OffsetFetchRequestTopics(
        name=name, partition_indexes=[0, 1]
    )]  # fmt: skip
    group = kinds.OffsetFetchRequestGroup(
        group_id=name, member_id=None, member_epoch=-1, topics=topics
    )
    return kinds[version](groups=[group], require_stable=False)


def _topics_of(response: Any, version: int, name: str) -> Sequence[Any]:
    if version < 8:
        check("OffsetFetch", response.error_code or 0)
        return list(response.topics)
    (group,) = [group for group in response.groups if group.group_id == name]
    check("OffsetFetch", group.error_code)
    return list(group.topics)


CONNECTIONS = (
    Question(
        about="the order of responses on one connection, of which some wait",
        answer="[0, 1, 2]",
        ask=_read_response_order,
    ),
    Question(
        about="the offered versions, also in the response to an unknown version",
        answer=f"[], the same, UnsupportedVersion 1 of {API_VERSIONS}",
        ask=_read_offered_versions,
    ),
    Question(
        about="Metadata of a topic in all versions, of all topics, of none",
        answer="True 0",
        ask=_read_metadata,
    ),
    Question(
        about="the coordinators of several groups, and of an invalid key type",
        answer="as one by one, InvalidRequest, InvalidRequest, InvalidRequest, InvalidRequest",
        ask=_find_several_coordinators,
    ),
    Question(
        about="a partition's end in all versions of ListOffsets",
        answer="['3']",
        ask=_read_ends,
    ),
    Question(
        about="records in all versions of Produce, read in all versions of Fetch",
        answer="0 1 2 3 4 5 6 7 8, {9}",
        ask=_produce_and_fetch,
    ),
    Question(
        about="existing and missing committed offsets in all versions of OffsetFetch",
        answer="[(0, 17), (1, -1)]",
        ask=_read_committed_offsets,
    ),
)
