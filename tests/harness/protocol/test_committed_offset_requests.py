"""The broker's codec reads these requests, and its responses are read."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pytest

from urteil.broker.wire import messages as m
from urteil.broker.wire.schema import Message
from urteil.harness.protocol import committed_offset_requests as requests

_COMMITTED, _FETCHED = m.OffsetCommitResponse, m.OffsetFetchResponse
_DELETED = m.OffsetDeleteResponse


@pytest.mark.parametrize(
    ("frame", "request_type", "answer", "read", "result"),
    [
        (requests.find_coordinator_request("g"), m.FindCoordinatorRequest,
         m.FindCoordinatorResponse(error_code=15, node_id=2, host="h", port=9),
         requests.read_find_coordinator,
         (15, "h:9")),
        (requests.commit_request("g", "t", [0, 2], 7), m.OffsetCommitRequest,
         _COMMITTED(topics=[_COMMITTED.OffsetCommitResponseTopic(name="t", partitions=[
             _COMMITTED.OffsetCommitResponsePartition(partition_index=0),
             _COMMITTED.OffsetCommitResponsePartition(partition_index=2, error_code=16)])]),
         requests.read_commit, 16),
        (requests.fetch_request("g", "t", [0, 2]), m.OffsetFetchRequest,
         _FETCHED(error_code=14, topics=[_FETCHED.OffsetFetchResponseTopic(name="t", partitions=[
             _FETCHED.OffsetFetchResponsePartition(
                 partition_index=partition, committed_offset=offset, metadata="")
             for partition, offset in ((0, 7), (2, -1))])]),
         requests.read_fetch, (14, {0: 7, 2: None})),
        (requests.offset_delete_request("g", "t", [0]), m.OffsetDeleteRequest,
         _DELETED(topics=[_DELETED.OffsetDeleteResponseTopic(name="t", partitions=[
             _DELETED.OffsetDeleteResponsePartition(partition_index=0, error_code=86)])]),
         requests.read_delete, 86),
        (requests.offset_delete_request("g", "t", [0]), m.OffsetDeleteRequest,
         _DELETED(error_code=69), requests.read_delete, 69),
        (requests.delete_group_request("g"), m.DeleteGroupsRequest,
         m.DeleteGroupsResponse(results=[
             m.DeleteGroupsResponse.DeletableGroupResult(group_id="g", error_code=68)]),
         requests.read_delete_group, 68),
    ],
)  # fmt: skip
def test_request_and_response(
    frame: bytes,
    request_type: type[Message],
    answer: Message,
    read: Callable[[bytes], Any],
    result: Any,
) -> None:
    length, _, version, _, name = struct.unpack_from(">ihhih", frame)
    assert length == len(frame) - 4
    body = frame[14 + name :]
    _, end = request_type.decode(version, body, 0)
    assert end == len(body)
    assert read(struct.pack(">i", 1) + b"".join(answer.encode(version))) == result
