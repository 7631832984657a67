"""kafka-python and the broker's codec read the requests of a transactional producer."""

from __future__ import annotations

import struct

from kafka.record import MemoryRecords

from urteil.broker.wire.messages import (
    JoinGroupRequest,
    JoinGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from urteil.harness.clients.payload import Encoder, decode
from urteil.harness.protocol.group_requests import (
    encode_assignment,
    join_request,
    read_join,
    read_sync,
    sync_request,
)
from urteil.harness.protocol.transaction_requests import (
    ADD_PARTITIONS,
    COMMIT_OFFSETS,
    END_TXN,
    END_TXN_WITH_EPOCH,
    PRODUCE,
    Producer,
    add_offsets_request,
    add_partitions_request,
    batch,
    end_txn_request,
    init_producer_id_request,
    produce_request,
    read_base_offset,
    read_error,
    read_init_producer_id,
    read_next_epoch,
    txn_offset_commit_request,
)

ONE = Producer("g-late1", 4711, 3)


def test_batch_is_transactional_and_valid() -> None:
    value = Encoder("run", "late1", 100).encode(7, b"k", 2, 1_000)
    result = MemoryRecords(batch(ONE, 5, b"k", value, 1_000)).next_batch()
    assert result.validate_crc()
    assert result.is_transactional
    assert not result.is_control_batch
    assert (result.producer_id, result.producer_epoch, result.base_sequence) == (4711, 3, 5)
    (record,) = result
    assert decode("run", record.value, record.key).value_id == "run/late1/7"


def test_requests_have_size_and_producer() -> None:
    who = b"\x00\x07g-late1" + struct.pack(">qh", 4711, 3)
    for request in (add_partitions_request(ONE, "t", 1), end_txn_request(ONE, commit=True)):
        assert int.from_bytes(request[:4], "big") == len(request) - 4
        assert who in request
    assert end_txn_request(ONE, commit=True)[-1] == 1
    assert end_txn_request(ONE, commit=False)[-1] == 0
    assert init_producer_id_request("id", 9).endswith(b"\x00\x02id\x00\x00\x00\x09")
    assert produce_request(ONE, "t", 1, b"xyz").endswith(b"\x00\x00\x00\x03xyz")


def test_end_with_an_epoch_is_packed_and_read() -> None:
    request = end_txn_request(ONE, commit=True, api=END_TXN_WITH_EPOCH)
    header = struct.pack(">hhi", 26, 5, 1) + b"\x00\x04late" + b"\x00"
    body = b"\x08g-late1" + struct.pack(">qhb", 4711, 3, 1) + b"\x00"
    assert request == struct.pack(">i", len(header + body)) + header + body
    answer = struct.pack(">ib", 1, 0) + struct.pack(">ihqhb", 0, 0, 4711, 4, 0)
    assert read_error(END_TXN_WITH_EPOCH, answer, "t") == 0
    assert read_next_epoch(answer) == (4711, 4)
    fenced = struct.pack(">ib", 1, 0) + struct.pack(">ihqhb", 0, 90, -1, -1, 0)
    assert read_error(END_TXN_WITH_EPOCH, fenced, "t") == 90


def test_responses_are_read() -> None:
    assert read_init_producer_id(struct.pack(">iihqh", 1, 0, 0, 4711, 3)) == (4711, 3)
    assert read_error(END_TXN, struct.pack(">iih", 1, 0, 48), "t") == 48
    added = struct.pack(">iii", 1, 0, 1) + b"\x00\x01t" + struct.pack(">iih", 1, 0, 51)
    assert read_error(ADD_PARTITIONS, added, "t") == 51
    response = struct.pack(">ii", 1, 1) + b"\x00\x01t" + struct.pack(">iihq", 1, 0, 0, 99)
    assert read_error(PRODUCE, response, "t") == 0
    assert read_base_offset(response, "t") == 99


def body_of(frame: bytes) -> bytes:
    """The body of a request."""
    return frame[4 + 2 + 2 + 4 + 2 + len("late") :]


def test_offset_commit_of_a_member() -> None:
    body = body_of(txn_offset_commit_request(ONE, ("g", 7, "m"), "t", 2, 99))
    assert body[:1] == b"\0"  # no tagged fields in the header
    result, end = TxnOffsetCommitRequest.decode(3, body, 1)
    assert end == len(body)
    assert (result.transactional_id, result.producer_id, result.producer_epoch) == (
        "g-late1",
        4711,
        3,
    )
    assert (result.group_id, result.generation_id, result.member_id) == ("g", 7, "m")
    assert result.group_instance_id is None
    (topic,) = result.topics
    (position,) = topic.partitions
    assert (topic.name, position.partition_index, position.committed_offset) == ("t", 2, 99)
    assert add_offsets_request(ONE, "g").endswith(b"\x00\x01g")
    of_topic = TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic
    of_partition = TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition
    response = of_topic(name="t", partitions=[of_partition(partition_index=2, error_code=22)])
    rejected = TxnOffsetCommitResponse(topics=[response])
    answer = struct.pack(">ib", 1, 0) + b"".join(rejected.encode(3))
    assert read_error(COMMIT_OFFSETS, answer, "t") == 22


def test_join_and_sync_of_the_only_member() -> None:
    body = body_of(join_request("g", "m"))
    joins, end = JoinGroupRequest.decode(2, body, 0)
    assert end == len(body)
    assert (joins.group_id, joins.member_id, len(joins.protocols)) == ("g", "m", 1)
    response = JoinGroupResponse(generation_id=7, protocol_name="range", leader="m", member_id="m")
    assert read_join(struct.pack(">i", 1) + b"".join(response.encode(2))) == (7, "m")
    assignment = encode_assignment("t", 2)
    assert assignment == b"\0\0" + b"\0\0\0\1" + b"\0\1t" + b"\0\0\0\1" + b"\0\0\0\2" + b"\xff" * 4
    for given in (assignment, None):
        body = body_of(sync_request("g", 7, "m", given))
        syncs, end = SyncGroupRequest.decode(1, body, 0)
        assert end == len(body)
        assert (syncs.group_id, syncs.generation_id, syncs.member_id) == ("g", 7, "m")
        assignments = [
            (assignment.member_id, bytes(assignment.assignment)) for assignment in syncs.assignments
        ]
        assert assignments == ([("m", assignment)] if given else [])
    kept = SyncGroupResponse(assignment=assignment)
    assert read_sync(struct.pack(">i", 1) + b"".join(kept.encode(1))) == assignment
