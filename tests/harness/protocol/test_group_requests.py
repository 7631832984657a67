"""The broker's codec reads requests that were packed by hand, and its responses are read."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from urteil.broker.wire.messages import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    WriteTxnMarkersRequest,
)
from urteil.harness.clients.special import abandoned_join
from urteil.harness.cluster.administration import client_quotas
from urteil.harness.protocol import committed_offset_requests, group_requests
from urteil.harness.protocol import transaction_requests as txn

TOPIC = "urteil"


def _body(request: bytes, *, flexible: bool = False) -> bytes:
    """The body of a request."""
    at = 4 + 8
    (length,) = struct.unpack_from(">h", request, at)
    return request[at + 2 + length + flexible :]


def _answer(message: Any, version: int, *, flexible: bool = False) -> bytes:
    head = b"\0\0\0\1" + (b"\0" if flexible else b"")
    return head + b"".join(message.encode(version))


def test_request_for_stable_offsets() -> None:
    request = group_requests.stable_offset_request("group", TOPIC, 3)
    decoded = OffsetFetchRequest.decode(7, memoryview(_body(request, flexible=True)), 0)[0]
    assert (decoded.group_id, decoded.require_stable) == ("group", True)
    (topic,) = decoded.topics
    assert (topic.name, list(topic.partition_indexes)) == (TOPIC, [3])


@pytest.mark.parametrize("metadata", ["", "a text", None])
@pytest.mark.parametrize("error", [0, 88])
def test_response_with_stable_offsets(metadata: str | None, error: int) -> None:
    kinds = OffsetFetchResponse
    partition = kinds.OffsetFetchResponsePartition(
        partition_index=3, committed_offset=17, metadata=metadata, error_code=error
    )
    topic = kinds.OffsetFetchResponseTopic(name=TOPIC, partitions=[partition])
    answer = _answer(kinds(topics=[topic]), 7, flexible=True)
    assert txn.read_error(txn.STABLE_OFFSETS, answer, TOPIC) == error
    assert group_requests.read_stable_offset(answer, TOPIC) == 17


def test_response_with_a_top_level_error() -> None:
    answer = _answer(OffsetFetchResponse(topics=[], error_code=16), 7, flexible=True)
    assert txn.read_error(txn.STABLE_OFFSETS, answer, TOPIC) == 16


@pytest.mark.parametrize(("options", "retention_ms"), [({}, -1), ({"retention_ms": 5000}, 5000)])
def test_commit_outside_of_a_generation(options: dict[str, int], retention_ms: int) -> None:
    request = committed_offset_requests.commit_request("group", TOPIC, [3], 17, **options)
    decoded = OffsetCommitRequest.decode(2, memoryview(_body(request)), 0)[0]
    who = (decoded.generation_id_or_member_epoch, decoded.member_id, decoded.retention_time_ms)
    assert who == (-1, "", retention_ms)
    assert decoded.topics[0].partitions[0].committed_offset == 17
    kinds = OffsetCommitResponse
    partition = kinds.OffsetCommitResponsePartition(partition_index=3, error_code=25)
    topic = kinds.OffsetCommitResponseTopic(name=TOPIC, partitions=[partition])
    answer = _answer(kinds(topics=[topic]), 2)
    assert txn.read_error(txn.OFFSET_COMMIT, answer, TOPIC) == 25


def test_join_without_member_id() -> None:
    request = abandoned_join.join_request("group", 6_000)
    decoded = JoinGroupRequest.decode(4, memoryview(_body(request)), 0)[0]
    times = (decoded.session_timeout_ms, decoded.rebalance_timeout_ms)
    assert (decoded.group_id, decoded.member_id, times) == ("group", "", (6_000, 6_000))
    assert [protocol.name for protocol in decoded.protocols] == ["range"]
    assert (
        abandoned_join.read_join(_answer(JoinGroupResponse(error_code=79, member_id="x"), 4)) == 79
    )


@pytest.mark.parametrize("version", [0, 1])
def test_marker_of_a_coordinator(version: int) -> None:
    producer = txn.Producer("id", producer_id=7, epoch=3)
    request = txn.write_markers_request(
        producer, TOPIC, 2, commit=True, coordinator_epoch=-1, api=(27, version)
    )
    body = memoryview(_body(request))[version:]
    (marker,) = WriteTxnMarkersRequest.decode(version, body, 0)[0].markers
    decoded = (marker.producer_id, marker.producer_epoch, marker.coordinator_epoch)
    assert (decoded, marker.transaction_result) == ((7, 3, -1), True)
    (topic,) = marker.topics
    assert (topic.name, list(topic.partition_indexes)) == (TOPIC, [2])


@pytest.mark.parametrize("client", ["p1", None])
def test_quota_of_a_client_id(client: str | None) -> None:
    quotas = {"producer_byte_rate": 5000.0, "consumer_byte_rate": None}
    request = client_quotas.alter_request(client, quotas)
    decoded = AlterClientQuotasRequest.decode(0, memoryview(_body(request)), 0)[0]
    (entry,) = decoded.entries
    assert [(part.entity_type, part.entity_name) for part in entry.entity] == [
        ("client-id", client)
    ]
    ops = [(op.key, op.value, op.remove) for op in entry.ops]
    assert ops == [("producer_byte_rate", 5000.0, False), ("consumer_byte_rate", 0.0, True)]
    assert not decoded.validate_only
    kinds = AlterClientQuotasResponse
    entity = kinds.EntityData(entity_type="client-id", entity_name=client)
    entry_result = kinds.EntryData(error_code=42, error_message="no", entity=[entity])
    assert client_quotas.read_error(_answer(kinds(entries=[entry_result]), 0)) == 42
