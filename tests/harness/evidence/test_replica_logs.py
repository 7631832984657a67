"""Logs on disk in Kafka's format, built by kafka-python, are read record by record."""

import pytest
from kafka.record.default_records import DefaultRecordBatchBuilder

from urteil.harness.clients.payload import Encoder
from urteil.harness.evidence.readers.replica_logs import find_logs, read_log

TOPIC_ID = "jyBLnm1AQHafQvz2OHjKhg"


def batch(base, values, *, epoch=0, producer_id=5, sequence=0, codec=0, keys=b"k"):
    builder = DefaultRecordBatchBuilder(
        magic=2, compression_type=codec, is_transactional=False, producer_id=producer_id,
        producer_epoch=1 if producer_id >= 0 else -1,
        base_sequence=sequence, batch_size=1 << 20,
    )  # fmt: skip
    for delta, value in enumerate(values):
        builder.append(delta, timestamp=1000 + base + delta, key=keys, value=value, headers=[])
    data = bytearray(builder.build())
    data[0:8] = base.to_bytes(8, "big")
    data[12:16] = epoch.to_bytes(4, "big")
    return bytes(data)


def values(first, count, partition=0):
    encoder = Encoder("r1", "p1", 60)
    return [encoder.encode(n, b"k", partition, 1000 + n) for n in range(first, first + count)]


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data" / "orders-0"
    folder.mkdir(parents=True)
    (folder / "partition.metadata").write_text(f"version: 0\ntopic_id: {TOPIC_ID}\n")
    (folder / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n3 4\n")
    (folder / "00000000000000000000.log").write_bytes(
        batch(0, values(0, 3)) + batch(3, values(3, 1), sequence=3)
    )
    (folder / "00000000000000000004.log").write_bytes(
        batch(4, values(4, 2), epoch=3, sequence=4, codec=1)
    )
    (tmp_path / "data" / "replication-offset-checkpoint").write_text("0\n1\norders 0 5\n")
    (tmp_path / "data" / "recovery-point-offset-checkpoint").write_text("0\n1\norders 0 4\n")
    (tmp_path / "data" / "log-start-offset-checkpoint").write_text("0\n0\n")
    return tmp_path / "data"


def read(data, topics=None):
    (log,) = find_logs(1, data, {"orders": TOPIC_ID} if topics is None else topics)
    return log, list(read_log(log, "r1"))


def test_records_of_all_segments(data):
    log, rows = read(data)
    assert [row["offset"] for row in rows] == [0, 1, 2, 3, 4, 5]
    assert [row["value_id"] for row in rows] == [f"r1/p1/{n}" for n in range(6)]
    assert [row["sequence"] for row in rows] == [0, 1, 2, 3, 4, 5]
    assert [row["segment_base"] for row in rows] == [0, 0, 0, 0, 4, 4]
    assert [row["batch_base"] for row in rows] == [0, 0, 0, 3, 4, 4]
    assert [row["leader_epoch"] for row in rows] == [0, 0, 0, 0, 3, 3]
    assert all(row["intact"] and row["key"] == "k" and row["producer_id"] == 5 for row in rows)
    assert all(row["topic_id"] == TOPIC_ID and row["broker"] == 1 for row in rows)
    assert log.row["log_start"] == 0
    assert log.row["log_end"] == 6
    assert (log.row["high_watermark"], log.row["recovery_point"]) == (5, 4)
    assert log.row["epochs"] == '{"0":0,"3":4}'
    assert log.damage == []


@pytest.mark.parametrize("codec", [0, 1, 2, 3, 4], ids=["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_in_every_codec_are_read(data, codec):
    """A topic of lz4, snappy or zstd was taken for damaged (known-answers over Apache Kafka)."""
    (data / "orders-0" / "00000000000000000004.log").write_bytes(
        batch(4, values(4, 2), epoch=3, sequence=4, codec=codec)
    )
    log, rows = read(data)
    assert [row["value_id"] for row in rows] == [f"r1/p1/{n}" for n in range(6)]
    assert all(row["intact"] for row in rows)
    assert log.damage == []


def test_empty_segment_defines_the_log_end(data):
    (data / "orders-0" / "00000000000000000009.log").write_bytes(b"")
    log, rows = read(data)
    assert len(rows) == 6
    assert log.row["log_end"] == 9


def test_cut_tail_is_reported_at_every_byte(data):
    segment = data / "orders-0" / "00000000000000000004.log"
    content = segment.read_bytes()
    for length in range(1, len(content)):
        segment.write_bytes(content[:length])
        log, rows = read(data)
        assert [row["offset"] for row in rows] == [0, 1, 2, 3]
        assert len(log.damage) == 1
        assert log.row["log_end"] == 4


@pytest.mark.parametrize("off_ms", [0, 1])
def test_record_has_its_producers_timestamp(data, off_ms):
    value = Encoder("r1", "p1", 60).encode(0, b"k", 0, 1000 + off_ms)
    (data / "orders-0" / "00000000000000000000.log").write_bytes(batch(0, [value]))
    _, rows = read(data)
    assert rows[0]["intact"] is (off_ms == 0)


@pytest.mark.parametrize("codec", [0, 1, 2, 3, 4], ids=["none", "gzip", "snappy", "lz4", "zstd"])
def test_damaged_bytes_never_raise_and_are_never_intact(data, codec):
    segment = data / "orders-0" / "00000000000000000000.log"
    log_bytes = batch(0, values(0, 3), codec=codec) + batch(3, values(3, 1), sequence=3)
    for position in range(len(log_bytes)):
        changed = bytearray(log_bytes)
        changed[position] ^= 0x5A
        segment.write_bytes(changed)
        log, rows = read(data)
        # Base offset, epoch and the producer's fields are not part of a value's checksum.
        wrong = [row for row in rows if row.get("intact") is False]
        same = [row.get("value_id") for row in rows] == [f"r1/p1/{n}" for n in range(6)]
        assert log.damage or wrong or same


def test_markers_have_no_value(data):
    marker = bytearray(batch(6, [b"\0\0\0\0\0\0"], keys=b"\0\0\0\1"))
    marker[22] |= 0x30
    with (data / "orders-0" / "00000000000000000004.log").open("ab") as segment:
        segment.write(marker)
    _, rows = read(data)
    assert rows[-1]["control"] == "commit"
    assert rows[-1]["transactional"]
    assert rows[-1].get("value_id") is None


def test_topics_of_others_are_not_decoded(data):
    log, rows = read(data, {})
    assert log.topic_id == TOPIC_ID
    assert all(row.get("intact") is None and row.get("value_id") is None for row in rows)


def test_other_folders_are_ignored(data):
    for name in ("orders-1.0123456789abcdef-delete", "junk", "orders-2.01-future"):
        (data / name).mkdir()
    assert [log.partition for log in find_logs(1, data, {})] == [0]


def test_sequences_wrap_to_zero_within_a_batch(data):
    file = data / "orders-0" / "00000000000000000004.log"
    file.write_bytes(batch(4, values(4, 3), sequence=2**31 - 2))
    _, rows = read(data)
    assert [row["sequence"] for row in rows] == [0, 1, 2, 3, 2**31 - 2, 2**31 - 1, 0]


def test_sequence_without_a_producer_is_null(data):
    """Kafka's group coordinators write 0 into every batch of the offsets topic."""
    file = data / "orders-0" / "00000000000000000004.log"
    file.write_bytes(batch(4, values(4, 2), producer_id=-1, sequence=0))
    _, rows = read(data)
    assert [row.get("sequence") for row in rows] == [0, 1, 2, 3, None, None]


def test_log_without_a_stored_id_has_that_of_zookeeper(data):
    znode_ids = {"orders": "of-zookeeper"}
    (log,) = find_logs(1, data, {"orders": "of-the-run"}, (), znode_ids)
    (made,) = find_logs(1, data, {"orders": "of-the-run"}, (), znode_ids, are_made=True)
    stored = log.topic_id
    for file in data.glob("orders-*/partition.metadata"):
        file.unlink()
    (without,) = find_logs(1, data, {"orders": "of-the-run"}, (), znode_ids)
    assert stored not in (None, "of-zookeeper", "of-the-run")
    assert made.topic_id == without.topic_id == "of-zookeeper"
