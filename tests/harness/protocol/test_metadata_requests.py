"""The broker's codec reads the probe's requests, and its responses are read."""

from __future__ import annotations

import struct

from urteil.broker.wire import messages
from urteil.harness.protocol.metadata_requests import (
    largest_timestamp_request,
    producer_id_request,
    read_largest_timestamp,
    read_producer_id,
)


def _parts(frame: bytes, *, tags: int = 0) -> tuple[int, bytes]:
    """The version and the body of a request."""
    length, _, version, _, name = struct.unpack_from(">ihhih", frame)
    assert length == len(frame) - 4
    return version, frame[14 + name + tags :]


def test_request_for_the_largest_timestamp() -> None:
    version, body = _parts(largest_timestamp_request(3, [("a", 0), ("b", 1), ("a", 2)]), tags=1)
    decoded, end = messages.ListOffsetsRequest.decode(version, body, 0)
    assert end == len(body)
    assert (decoded.replica_id, decoded.isolation_level) == (-1, 0)
    slots = [
        (topic.name, one.partition_index, one.current_leader_epoch, one.timestamp)
        for topic in decoded.topics
        for one in topic.partitions
    ]
    assert slots == [("a", 0, -1, -3), ("a", 2, -1, -3), ("b", 1, -1, -3)]
    topic, partition = (
        messages.ListOffsetsResponse.ListOffsetsTopicResponse,
        messages.ListOffsetsResponse.ListOffsetsPartitionResponse,
    )
    results = [
        topic(name="a", partitions=[partition(partition_index=0, timestamp=5, offset=7,
                                              leader_epoch=2)]),
        topic(name="b", partitions=[partition(partition_index=1, error_code=6)]),
    ]  # fmt: skip
    answer = messages.ListOffsetsResponse(topics=results)
    result = read_largest_timestamp(struct.pack(">iB", 3, 0) + b"".join(answer.encode(version)))
    assert result == [("a", 0, 0, 5, 7, 2), ("b", 1, 6, -1, -1, -1)]


def test_request_for_a_producer_id() -> None:
    version, body = _parts(producer_id_request(3))
    decoded, end = messages.InitProducerIdRequest.decode(version, body, 0)
    assert end == len(body)
    assert decoded.transactional_id is None
    answer = messages.InitProducerIdResponse(error_code=7, producer_id=4711)
    assert read_producer_id(struct.pack(">i", 3) + b"".join(answer.encode(version))) == (7, 4711)
