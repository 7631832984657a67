"""Messages of magic 0 and 1 on disk, plain and compressed, are rows of evidence like any record."""

import itertools
import struct
import zlib

import pytest

from tests.broker.log.old_folders import OLD_CODECS, Row, draw, old_messages
from tests.harness.evidence.test_replica_logs import TOPIC_ID, batch, values
from urteil.harness.clients.payload import Encoder
from urteil.harness.evidence.readers.replica_logs import find_logs, read_log

CASES = list(itertools.product((0, 1), OLD_CODECS))
NAME = "00000000000000000000.log"


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "data" / "orders-0"
    folder.mkdir(parents=True)
    (folder / "partition.metadata").write_text(f"version: 0\ntopic_id: {TOPIC_ID}\n")
    return folder


def read(folder):
    (log,) = find_logs(1, folder.parent, {"orders": TOPIC_ID})
    return log, list(read_log(log, "r1"))


def sent(offsets, magic):
    """Records of the run at these offsets; messages of magic 0 have no time."""
    encoder = Encoder("r1", "p1", 60)
    return [
        Row(offset, 1000 + n if magic else -1, b"k", encoder.encode(n, b"k", 0, 1000 + n))
        for n, offset in enumerate(offsets)
    ]


def recoded(message, **fields):
    """The message with other fields of its head, and the checksum that fits them."""
    data = bytearray(message)
    data[17] = fields.get("attributes", data[17])
    if "time_ms" in fields:
        struct.pack_into(">q", data, 18, fields["time_ms"])
    struct.pack_into(">I", data, 12, zlib.crc32(data[16:]))
    return bytes(data)


@pytest.mark.parametrize(("magic", "codec"), CASES)
def test_old_messages_are_read_in_every_codec(folder, magic, codec):
    rows = sent((3, 4, 7, 9), magic)
    data = old_messages(magic, codec, rows)
    (folder / "00000000000000000003.log").write_bytes(data)
    log, records = read(folder)
    assert log.damage == []
    assert [row["offset"] for row in records] == [3, 4, 7, 9]
    assert [row["value_id"] for row in records] == [f"r1/p1/{n}" for n in range(4)]
    assert [row["timestamp_ms"] for row in records] == [row.time_ms for row in rows]
    assert {(row["leader_epoch"], row["producer_id"], row["transactional"]) for row in records} == {
        (-1, None, False)
    }
    assert all(row["intact"] and row["key"] == "k" and "sequence" not in row for row in records)
    assert [row["batch_base"] for row in records] == ([3] * 4 if codec else [3, 4, 7, 9])
    assert sum({row["batch_base"]: row["batch_bytes"] for row in records}.values()) == len(data)
    assert log.row["log_end"] == 10


def test_formats_mixed_in_one_segment_are_read_in_order(folder):
    data = old_messages(0, 1, sent((0, 1), 0)) + old_messages(1, 2, sent((2, 3), 1))
    (folder / NAME).write_bytes(data + batch(4, values(4, 2), epoch=3))
    log, records = read(folder)
    assert [row["offset"] for row in records] == list(range(6))
    assert [row["leader_epoch"] for row in records] == [-1] * 4 + [3] * 2
    assert all(row["intact"] for row in records)
    assert (log.row["log_end"], log.damage) == (6, [])


def test_drawn_folders_without_damage_are_read_whole(folder):
    read_folders = 0
    for log in map(draw, range(60)):
        if log.hurt_file or log.leaps:
            continue
        target = folder.parent / f"drawn-{read_folders}"
        log.write(target)
        (replica,) = [log for log in find_logs(1, folder.parent, {}) if log.folder == target]
        rows = list(read_log(replica, "r1"))
        assert replica.damage == [], log.what
        assert [(row["offset"], row["timestamp_ms"]) for row in rows] == [
            (row.offset, row.time_ms) for row in log.rows
        ], log.what
        read_folders += 1
    assert read_folders > 10


def test_append_time_of_a_compressed_message_holds_for_its_records(folder):
    wrapper = old_messages(1, 1, sent((0, 1), 1))
    (folder / NAME).write_bytes(recoded(wrapper, attributes=1 | 8, time_ms=5))
    log, records = read(folder)
    assert [row["timestamp_ms"] for row in records] == [5, 5]
    assert all(row["intact"] for row in records)
    assert log.damage == []


def test_old_messages_within_a_newer_wrapper_are_read(folder):
    """Brokers that converted a format left such; their offsets count as the wrapper does."""
    inner = old_messages(0, 0, sent((0, 1), 0))
    value = zlib.compress(inner, wbits=31)
    wrapper = old_messages(1, 0, [Row(8, 1001, None, value)])
    (folder / NAME).write_bytes(recoded(wrapper, attributes=1))
    log, records = read(folder)
    assert [row["offset"] for row in records] == [7, 8]
    assert log.damage == []


@pytest.mark.parametrize(("magic", "codec"), CASES)
def test_damaged_old_message_is_named_and_never_intact(folder, magic, codec):
    first = old_messages(magic, codec, sent((0, 1, 2), magic))
    data = first + old_messages(magic, 0, sent((3,), magic))
    for position in range(len(first)):
        changed = bytearray(data)
        changed[position] ^= 0x5A
        (folder / NAME).write_bytes(changed)
        log, records = read(folder)
        wrong = [row for row in records if row.get("intact") is False]
        moved = [row["offset"] for row in records] != [0, 1, 2, 3]
        assert log.damage or wrong or moved, position


def test_cut_old_message_ends_the_log_at_every_byte(folder):
    data = old_messages(0, 0, sent((0,), 0))
    last = old_messages(0, 2, sent((1, 2), 0))
    for length in range(1, len(last)):
        (folder / NAME).write_bytes(data + last[:length])
        log, records = read(folder)
        assert [row["offset"] for row in records] == [0]
        assert len(log.damage) == 1
        assert log.row["log_end"] == 1


def test_index_entries_point_at_old_messages(folder):
    first, second = old_messages(1, 1, sent((0, 1), 1)), old_messages(1, 1, sent((2, 3), 1))
    (folder / NAME).write_bytes(first + second)
    (folder / "00000000000000000000.index").write_bytes(struct.pack(">ii", 3, len(first)))
    (folder / "00000000000000000000.timeindex").write_bytes(struct.pack(">qi", 1001, 3))
    log, _ = read(folder)
    assert [(row["kind"], row["there_base"], row["there_last"]) for row in log.indexes] == [
        ("offset", 2, 3),
        ("time", 2, 3),
    ]
    assert [row["there_timestamp_ms"] for row in log.indexes] == [1001, 1001]
