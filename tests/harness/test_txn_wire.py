"""The late client's bytes are what a transactional producer sends, to kafka-python's own codec."""

from __future__ import annotations

import struct

from kafka.record import MemoryRecords

from urteil.harness.workload.payload import Encoder, decode
from urteil.harness.workload.txn_wire import (
    ADD_PARTITIONS,
    END_TXN,
    PRODUCE,
    Producer,
    add_request,
    batch,
    end_request,
    error_of,
    init_request,
    produce_request,
    read_init,
    read_offset,
)

ONE = Producer("g-late1", 4711, 3)


def test_a_batch_is_transactional_and_whole() -> None:
    value = Encoder("run", "late1", 100).encode(7, b"k", 2, 1_000)
    found = MemoryRecords(batch(ONE, 5, b"k", value, 1_000)).next_batch()
    assert found.validate_crc()
    assert found.is_transactional
    assert not found.is_control_batch
    assert (found.producer_id, found.producer_epoch, found.base_sequence) == (4711, 3, 5)
    (record,) = found
    assert decode("run", record.value, record.key).value_id == "run/late1/7"


def test_requests_are_framed_and_name_their_producer() -> None:
    who = b"\x00\x07g-late1" + struct.pack(">qh", 4711, 3)
    for request in (add_request(ONE, "t", 1), end_request(ONE, commit=True)):
        assert int.from_bytes(request[:4], "big") == len(request) - 4
        assert who in request
    assert end_request(ONE, commit=True)[-1] == 1
    assert end_request(ONE, commit=False)[-1] == 0
    assert init_request("id", 9).endswith(b"\x00\x02id\x00\x00\x00\x09")
    assert produce_request(ONE, "t", 1, b"xyz").endswith(b"\x00\x00\x00\x03xyz")


def test_answers_are_read() -> None:
    assert read_init(struct.pack(">iihqh", 1, 0, 0, 4711, 3)) == (4711, 3)
    assert error_of(END_TXN, struct.pack(">iih", 1, 0, 48), "t") == 48
    added = struct.pack(">iii", 1, 0, 1) + b"\x00\x01t" + struct.pack(">iih", 1, 0, 51)
    assert error_of(ADD_PARTITIONS, added, "t") == 51
    told = struct.pack(">ii", 1, 1) + b"\x00\x01t" + struct.pack(">iihq", 1, 0, 0, 99)
    assert error_of(PRODUCE, told, "t") == 0
    assert read_offset(told, "t") == 99
