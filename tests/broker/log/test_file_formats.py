"""The bytes of the files are Kafka's."""

import os
import struct
import uuid
from pathlib import Path

import crc32c
import pytest

from tests.broker.log.helpers import NOW_MS, append, batch, end_txn, open_log
from urteil.broker.log import checkpoints, producer_snapshots
from urteil.broker.log.epoch_cache import EpochCache
from urteil.broker.log.log_config import LogConfig
from urteil.broker.log.producer_states import ProducerEntry, SentBatch
from urteil.broker.log.storage import Storage


def test_file_names_and_sizes_after_a_roll(tmp_path: Path) -> None:
    log = open_log(tmp_path, config=LogConfig(segment_bytes=500, index_interval_bytes=200))
    for number in range(12):
        append(log, batch([b"x" * 40], timestamp_ms=NOW_MS + number, producer=(1, 0, number)))
    base = log.segments[1].base_offset
    assert (base, log.segments.base_offsets) == (4, [0, 4, 8])
    assert (tmp_path / "00000000000000000004.snapshot").stat().st_size == 56
    # entries for the third batch (the first two fill the interval), then the sealing one
    index = (tmp_path / "00000000000000000004.index").read_bytes()
    assert index == struct.pack(">ii", 2, 2 * log.segments[1].size // 4)
    times = (tmp_path / "00000000000000000004.timeindex").read_bytes()
    assert times == struct.pack(">qiqi", NOW_MS + 6, 2, NOW_MS + 7, 3)


def test_snapshot_has_version_1_and_a_checksum(tmp_path: Path) -> None:
    entry = ProducerEntry(7, 2, [SentBatch(4, 99, 3, NOW_MS)], NOW_MS, 5, 96)
    data = producer_snapshots.encode([entry])
    body = struct.pack(">iqhiqiqiq", 1, 7, 2, 4, 99, 3, NOW_MS, 5, 96)
    assert data == struct.pack(">hI", 1, crc32c.crc32c(body)) + body
    assert producer_snapshots.decode(data) == [entry]
    for damage in (data[:-1], data[:5], b"\0\2" + data[2:], data[:-1] + b"\xff"):
        with pytest.raises(producer_snapshots.DamagedSnapshot):
            producer_snapshots.decode(damage)


def test_producer_with_only_a_marker_has_no_batch() -> None:
    data = producer_snapshots.encode([ProducerEntry(7, 2, [], NOW_MS, 5, None)])
    assert struct.unpack_from(">qhiqiqiq", data, 10) == (7, 2, -1, -1, 0, NOW_MS, 5, -1)
    assert producer_snapshots.decode(data) == [ProducerEntry(7, 2, [], NOW_MS, 5, None)]


def test_transaction_index_entries_have_kafkas_format(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, batch(producer=(3, 0, 0), transactional=True))
    append(log, batch(producer=(4, 0, 0), transactional=True))
    end_txn(log, 3, commit=False)
    data = (tmp_path / "00000000000000000000.txnindex").read_bytes()
    assert data == struct.pack(">hqqqq", 0, 3, 0, 2, 1)


def test_offset_checkpoints_have_kafkas_format(tmp_path: Path) -> None:
    storage, path = Storage(), tmp_path / checkpoints.RECOVERY_POINTS
    rows = {("orders", 0): 5, ("a.b_c-d", 12): 2**40}
    checkpoints.write_offsets(storage, path, rows)
    assert path.read_text() == f"0\n2\norders 0 5\na.b_c-d 12 {2**40}\n"
    assert checkpoints.read_offsets(storage, path) == rows
    assert checkpoints.read_offsets(storage, tmp_path / "none") == {}


@pytest.mark.parametrize(
    "text", ["\n", "1\n0\n", "0\nx\n", "0\n2\na 0 1\n", "0\n1\na 0\n", "0\n1\na 0 x\n"]
)
def test_damaged_checkpoint_error_names_the_file(tmp_path: Path, text: str) -> None:
    path = tmp_path / "checkpoint"
    path.write_text(text)
    with pytest.raises(checkpoints.DamagedFile, match="checkpoint"):
        checkpoints.read_offsets(Storage(), path)


def test_empty_checkpoints_have_no_rows(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Apache Kafka makes cleaner-offset-checkpoint so."""
    path = tmp_path / "cleaner-offset-checkpoint"
    path.write_bytes(b"")
    assert checkpoints.read_offsets(Storage(), path) == {}
    (tmp_path / "leader-epoch-checkpoint").write_bytes(b"")
    assert EpochCache(Storage(), tmp_path).entries == []
    assert caplog.records == []


def test_partition_metadata_has_kafkas_format(tmp_path: Path) -> None:
    topic_id = checkpoints.decode_uuid("jyBLnm1AQHafQvz2OHjKhg")
    checkpoints.write_topic_id(Storage(), tmp_path, topic_id)
    data = (tmp_path / "partition.metadata").read_bytes()
    assert data == b"version: 0\ntopic_id: jyBLnm1AQHafQvz2OHjKhg"
    assert len(data) == 43
    assert checkpoints.read_topic_id(Storage(), tmp_path) == topic_id
    assert isinstance(topic_id, uuid.UUID)


def test_settings_follow_kafkas_synonyms() -> None:
    broker = {
        "log.retention.hours": "2",
        "log.retention.minutes": "3",
        "log.segment.bytes": "1000",
        "log.roll.hours": "1",
        "log.cleanup.policy": "compact, delete",
        "min.insync.replicas": "2",
        "log.flush.interval.messages": "",
    }
    config = LogConfig.from_properties(broker, {"segment.bytes": "77", "unknown": "x"})
    assert config == LogConfig(
        retention_ms=180_000,
        segment_bytes=77,
        segment_ms=3_600_000,
        cleanup_policy="compact,delete",
        min_insync_replicas=2,
    )
    assert config.compacts
    assert config.deletes
    assert LogConfig.from_properties({"log.retention.hours": "-1"}).retention_ms == -1
    assert LogConfig.from_properties({}) == LogConfig()
    with pytest.raises(ValueError, match=r"segment\.bytes"):
        LogConfig.from_properties({}, {"segment.bytes": "many"})
    with pytest.raises(ValueError, match=r"unclean\.leader\.election\.enable"):
        LogConfig.from_properties({"unclean.leader.election.enable": "perhaps"})


def test_atomic_write_continues_after_partial_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:3]))
    Storage().write_atomic(tmp_path / "file", b"0123456789")
    assert (tmp_path / "file").read_bytes() == b"0123456789"
