"""Questions about what a broker says of itself and others, in whatever version it is asked, and in
what order it answers."""

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
    OF_GROUP,
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
    appended,
    batch,
    led,
    parts_of,
    produce,
    written,
)
from urteil.harness.protocol.framing import encode_request

Told = tuple[int, str]
ASKED = range(4, 13)
"""Versions of Metadata in which no topic need be made."""
PRODUCED, FETCHED = range(3, 12), range(4, 13)
"""Versions of Produce and Fetch with batches as they are, the latter by topics' names."""
API_VERSIONS, NEVER, NO_TAGS = 18, 99, b"\0"
"""The key of ApiVersions, a version that it does not have, and how the header of such ends."""
OF_NOTHING = 9
"""No key of a coordinator is of this type."""


def _in_order(brokers: Brokers, name: str) -> Told:
    """A fetch that waits, and then one that need not, on one connection."""
    leader, _ = led(brokers, name)
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


def _offered(brokers: Brokers, name: str) -> Told:
    """All brokers offer the same, these versions at the least; whoever asks in one that is not
    offered is told which one is (KIP-511)."""

    def told(node: int) -> str:
        answer = brokers.ask(node, ApiVersionsRequest[0]())
        check("ApiVersions", answer.error_code)
        offered = {one.api_key: (one.min_version, one.max_version) for one in answer.api_keys}
        lacking = [
            kind.__name__
            for kind, version in NEEDED
            if not offered[kind.API_KEY][0] <= version <= offered[kind.API_KEY][1]
        ]
        return f"{lacking} {hash(frozenset(offered.items())) & 0xFFFF}"

    node = brokers.nodes[0]
    first = told(node)
    node, found = by_all(brokers, told, first)
    data = brokers.raw(node, encode_request((API_VERSIONS, NEVER), 1, NO_TAGS))
    error, entries, key = struct.unpack_from(">hih", data, 4)
    refused = f"{name_of(error)} {entries} of {key}"
    return node, f"{first.split()[0]}, {'the same' if found == first else 'others'}, {refused}"


NEEDED: Sequence[tuple[Any, int]] = (
    (ProduceRequest, 11),
    (FetchRequest, 17),
    (ListOffsetsRequest, 9),
    (MetadataRequest, 12),
    (OffsetFetchRequest, 9),
    (FindCoordinatorRequest, 6),
    (DescribeGroupsRequest, 5),
)


def _metadata(brokers: Brokers, name: str) -> Told:
    """One topic in all versions; all topics; none."""
    leader, follower = led(brokers, name, 2)
    wanted = [[p, leader, [leader, follower], [leader, follower]] for p in range(2)]

    def told(node: int) -> str:
        for version in ASKED:
            parts = brokers.metadata(node, name, version=version).partitions
            found = [
                [one.partition_index, one.leader_id, list(one.replica_nodes), sorted(one.isr_nodes)]
                for one in sorted(parts, key=lambda one: int(one.partition_index))
            ]
            if found != wanted:
                return f"{found} in version {version}"
        known = {one.name for one in brokers.ask(node, _every(None)).topics}
        return f"{name in known} {len(brokers.ask(node, _every([])).topics)}"

    return by_all(brokers, told, "True 0")


def _every(topics: Sequence[Any] | None) -> Any:
    return MetadataRequest[7](topics=topics, allow_auto_topic_creation=False)


def _several(brokers: Brokers, name: str) -> Told:
    """The coordinators of several keys at once (KIP-699), and of what has none."""
    keys = [f"{name}-{number}" for number in range(4)]
    node = brokers.nodes[0]

    def asked(kind: int) -> dict[str, Any]:
        request = FindCoordinatorRequest[4](key_type=kind, coordinator_keys=keys)
        return {one.key: one for one in brokers.ask(node, request).coordinators}

    found = asked(OF_GROUP)
    check("FindCoordinator", max(one.error_code for one in found.values()))
    same = all(found[key].node_id == brokers.coordinator(key) for key in keys)
    errors = names(one.error_code for one in asked(OF_NOTHING).values())
    return node, f"{'as one by one' if same else 'elsewhere'}, {errors}"


def _ends(brokers: Brokers, name: str) -> Told:
    """Where a partition ends, in all versions of ListOffsets."""
    leader, _ = led(brokers, name)
    written(brokers, leader, name, batch(b"0", b"1", b"2"))
    kinds = ListOffsetsRequest.ListOffsetsTopic
    told = []
    for version in range(1, 10):
        part = kinds.ListOffsetsPartition(
            partition_index=0, current_leader_epoch=-1, timestamp=LATEST
        )
        request = ListOffsetsRequest[version](
            replica_id=-1, isolation_level=0, topics=[kinds(name=name, partitions=[part])]
        )
        answer = brokers.ask(leader, request).topics[0].partitions[0]
        told.append(answer.offset if not answer.error_code else name_of(answer.error_code))
    return leader, str(sorted(set(map(str, told))))


def _written_and_read(brokers: Brokers, name: str) -> Told:
    """A record in each version of Produce, and all of them in each version of Fetch that names
    topics."""
    leader, _ = led(brokers, name)
    told = []
    for version in PRODUCED:
        answer = produce(brokers, leader, name, 0, batch(b"0"), version=version)
        part = appended(answer)
        told.append(name_of(part.error_code) if part.error_code else str(part.base_offset))
    kinds = FetchRequest
    sizes = set()
    for version in FETCHED:
        part = kinds.FetchTopic.FetchPartition(
            partition=0, current_leader_epoch=-1, fetch_offset=0, last_fetched_epoch=-1,
            log_start_offset=-1, partition_max_bytes=MOST,
        )  # fmt: skip
        asked = kinds[version](
            replica_id=-1, max_wait_ms=0, min_bytes=1, max_bytes=MOST, isolation_level=0,
            session_id=0, session_epoch=-1, forgotten_topics_data=[], rack_id="",
            topics=[kinds.FetchTopic(topic=name, partitions=[part])],
        )  # fmt: skip
        (read,) = parts_of(brokers.ask(leader, asked))
        sizes.add(len(read.records or b"") // len(batch(b"0")))
    return leader, f"{' '.join(told)}, {sizes}"


def _positions(brokers: Brokers, name: str) -> Told:
    """A position that there is and one that is not, in all versions of OffsetFetch but the
    first."""
    brokers.create(name, [[brokers.nodes[0]]] * 2)
    one = member(brokers, name)
    check("OffsetCommit", one.commit(name, {0: 17})[0])
    told = set()
    for version in range(1, 10):
        for topic in _topics_of(one.ask(_wanted(name, version)), version, name):
            told.add(str(sorted((p.partition_index, p.committed_offset) for p in topic.partitions)))
    return one.node, " ".join(sorted(told))


def _wanted(name: str, version: int) -> Any:
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


def _topics_of(told: Any, version: int, name: str) -> Sequence[Any]:
    if version < 8:
        check("OffsetFetch", told.error_code or 0)
        return list(told.topics)
    (group,) = [one for one in told.groups if one.group_id == name]
    check("OffsetFetch", group.error_code)
    return list(group.topics)


CONNECTIONS = (
    Question(
        about="in what order requests of one connection are answered, of which some wait",
        answer="[0, 1, 2]",
        ask=_in_order,
    ),
    Question(
        about="which versions brokers offer, and say so to who knows none of them",
        answer=f"[], the same, UnsupportedVersion 1 of {API_VERSIONS}",
        ask=_offered,
    ),
    Question(
        about="Metadata of a topic in all versions, of all topics, of none",
        answer="True 0",
        ask=_metadata,
    ),
    Question(
        about="who coordinates several groups, and what is none",
        answer="as one by one, InvalidRequest, InvalidRequest, InvalidRequest, InvalidRequest",
        ask=_several,
    ),
    Question(
        about="where a partition ends, in all versions of ListOffsets",
        answer="['3']",
        ask=_ends,
    ),
    Question(
        about="records in all versions of Produce, read in all of Fetch",
        answer="0 1 2 3 4 5 6 7 8, {9}",
        ask=_written_and_read,
    ),
    Question(
        about="positions that there are, and are not, in all versions of OffsetFetch",
        answer="[(0, 17), (1, -1)]",
        ask=_positions,
    ),
)
