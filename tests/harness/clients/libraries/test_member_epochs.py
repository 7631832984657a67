"""Member epochs of librdkafka, and commits in epochs that have ended."""

from __future__ import annotations

import socket
import threading
from contextlib import closing

import pytest
from confluent_kafka import Consumer
from kafka.protocol.consumer import OffsetCommitRequest, OffsetCommitResponse

from urteil.harness.clients.libraries.member_epochs import (
    EndedEpoch,
    commit_in_ended_epoch,
    epoch_in,
    member_epoch,
)
from urteil.harness.protocol.committed_offset_requests import (
    member_commit_request,
    read_member_commit,
)

POSITIONS = {("a", 0): 7, ("a", 1): 8, ("b", 2): 9}


@pytest.mark.parametrize(("epoch", "expected"), [(3, 3), (0, None), (-1, None)])
def test_member_without_a_group_has_no_epoch(epoch: int, expected: int | None) -> None:
    metadata = b"CGMDv2:" + epoch.to_bytes(4, "little", signed=True) + b"group\0member\0\1"
    assert epoch_in(metadata) == expected


def test_group_metadata_of_another_form_is_rejected() -> None:
    with pytest.raises(ValueError, match="unknown form: b'CGMDv3:"):
        epoch_in(b"CGMDv3:\3\0\0\0group")


def test_librdkafka_reports_group_metadata_in_the_known_form() -> None:
    kafka = Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "log_level": 0})
    with closing(kafka):
        assert member_epoch(kafka) is None


def test_commit_in_an_epoch_is_encoded_as_by_kafka_python() -> None:
    data = member_commit_request("group", 5, "member", POSITIONS)
    request = OffsetCommitRequest[9].decode(data[4:], header=True)
    assert (request.group_id, request.member_id) == ("group", "member")
    assert (request.generation_id_or_member_epoch, request.group_instance_id) == (5, None)
    committed = {
        (topic.name, partition.partition_index): partition.committed_offset
        for topic in request.topics
        for partition in topic.partitions
    }
    assert committed == POSITIONS


@pytest.mark.parametrize(("errors", "first"), [((0, 0), 0), ((0, 113), 113)])
def test_first_error_of_a_commit_is_read(errors: tuple[int, int], first: int) -> None:
    topic = OffsetCommitResponse.OffsetCommitResponseTopic
    partitions = [
        topic.OffsetCommitResponsePartition(partition_index=p, error_code=error)
        for p, error in enumerate(errors)
    ]
    response = OffsetCommitResponse[9](
        throttle_time_ms=0, topics=[topic(name="a", partitions=partitions)]
    )
    response.with_header(correlation_id=1)
    assert read_member_commit(bytes(response.encode(header=True))) == first


def test_commit_is_unknown_where_no_broker_answers() -> None:
    """A listener that closes each connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=lambda: server.accept()[0].close())
        thread.start()
        ended = EndedEpoch(epoch=1, member_id="m", positions=POSITIONS)
        address = f"127.0.0.1:{server.getsockname()[1]}"
        outcome, error = commit_in_ended_epoch([address], "group", ended)
        thread.join()
    assert (outcome, error) == ("info", "ConnectionError")
