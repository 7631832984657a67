"""The lying client's bytes are a batch to kafka-python, but for their CRC."""

from __future__ import annotations

from kafka.record import MemoryRecords

from urteil.harness.workload.payload import Encoder, decode
from urteil.harness.workload.raw import produce_request, read_answer, spoiled_batch


def test_a_spoiled_batch_is_well_formed_but_for_its_crc() -> None:
    value = Encoder("run", "raw1", 100).encode(7, b"k", 2)
    batch = MemoryRecords(spoiled_batch(b"k", value, 1_000)).next_batch()
    assert not batch.validate_crc()
    (record,) = batch
    payload = decode("run", record.value, record.key)
    assert (record.key, payload.value_id, payload.intact) == (b"k", "run/raw1/7", False)


def test_the_request_is_framed() -> None:
    frame = produce_request(9, "t", 1, b"xyz", 500)
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    assert frame.endswith(b"xyz")


def test_the_answer_is_read() -> None:
    answer = bytes.fromhex("00000009 00000001 0001 74 00000001 00000001 0002 ffffffffffffffff")
    assert read_answer(answer, "t") == (2, -1)
