"""What every replica holds on disk after the run: Kafka's segments, read without any broker's code.

Batch headers are parsed here, records by kafka-python. Sources: Kafka's documentation of the record
batch ("Record Batch", "Control Batches"), `CheckpointFile`, `PartitionMetadataFile`.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from crc32c import crc32c
from kafka.errors import KafkaError
from kafka.record.default_records import ControlRecord, DefaultRecordBatch
from snappy import UncompressError
from zstandard import ZstdError

from urteil.harness.history.index_files import Layout, read_indexes
from urteil.harness.workload.payload import decode, decode_copy, key_text, of_client_ms

Row = dict[str, Any]

_HEADER = struct.Struct(">qiibIhiqqqhii")
_LENGTH_AT_END = 12
_CRC_FROM = 21
_TRANSACTIONAL, _CONTROL = 0x10, 0x20
_SEQUENCES = 1 << 31
"""They begin at 0 again behind the last one, within a batch too."""
_UNREADABLE = (
    *(KafkaError, struct.error, ValueError, OSError),
    *(EOFError, zlib.error, UncompressError, RuntimeError, ZstdError),  # of gzip, snappy, lz4, zstd
)
_FOLDER = re.compile(r"(?P<topic>[a-zA-Z0-9._-]+)-(?P<partition>\d+)")


@dataclass(slots=True)
class ReplicaLog:
    """One replica's log. `row` is its row of `logs` once its records were read to the end.

    `indexes` are its rows of `indexes`; `damage` says in sentences what could not be read.
    """

    broker: int
    topic: str
    partition: int
    folder: Path
    topic_id: str | None
    ours: bool
    copies: bool = False
    row: Row = field(default_factory=dict)
    records: int = 0
    damage: list[str] = field(default_factory=list)
    indexes: list[Row] = field(default_factory=list)

    def place(self) -> Row:
        return {
            "broker": self.broker,
            "topic_id": self.topic_id,
            "topic": self.topic,
            "partition": self.partition,
        }


def find_logs(
    broker: int, data: Path, topic_ids: dict[str, str], copies: Collection[str] = ()
) -> list[ReplicaLog]:
    """The logs in one broker's log directory, without those that wait for their deletion.

    `topic_ids` are the run's own topics: only their values are decoded. To `copies` of them an
    application writes.
    """
    found = []
    for folder in sorted(path for path in data.iterdir() if path.is_dir()):
        match = _FOLDER.fullmatch(folder.name)
        if match is None or folder.name.endswith(("-delete", "-future", "-stray")):
            continue
        topic = match["topic"]
        topic_id = _topic_id(folder) or topic_ids.get(topic)
        partition = int(match["partition"])
        ours = topic in topic_ids
        log = ReplicaLog(broker, topic, partition, folder, topic_id, ours, topic in copies)
        found.append(log)
    return found


def read_log(log: ReplicaLog, run: str) -> Iterator[Row]:
    """Rows of `replicas`, record by record; fills `log.row`, `log.records`, `log.damage`."""
    segments = sorted(log.folder.glob("*.log"))
    end = int(segments[0].stem) if segments else 0
    for segment in segments:
        end, layout = max(end, int(segment.stem)), Layout()
        for batch, damage in _batches(segment):
            if damage:
                log.damage.append(f"{segment.name}: {damage}")
                break
            header = _HEADER.unpack_from(batch)
            layout.add(len(batch), header[0], _last_offset(batch), header[8])
            for row in _batch_rows(log, int(segment.stem), batch, run):
                end = max(end, row["offset"] + 1)
                log.records += 1
                if header[5] & _CONTROL:
                    layout.controls[row["offset"]] = row.get("control")
                yield row
            end = max(end, _last_offset(batch) + 1)
        log.indexes += [log.place() | row for row in read_indexes(segment, layout)]
    log.row = _log_row(log, int(segments[0].stem) if segments else 0, end)
    log.row["active_base"] = int(segments[-1].stem) if segments else None


def _batches(segment: Path) -> Iterator[tuple[memoryview, str]]:
    """Batches in file order; a last item with a description when the tail is no batch."""
    data = memoryview(segment.read_bytes())
    at = 0
    while at < len(data):
        if len(data) - at < _HEADER.size:
            yield data, f"{len(data) - at} bytes at {at} are no batch"
            return
        header = _HEADER.unpack_from(data, at)
        size, magic = header[1] + _LENGTH_AT_END, header[3]
        if size < _HEADER.size or magic != 2:
            yield data, f"no batch at {at} (length {header[1]}, magic {magic})"
            return
        if at + size > len(data):
            yield data, f"the batch at {at} is cut ({len(data) - at} of {size} bytes)"
            return
        yield data[at : at + size], ""
        at += size


def _last_offset(batch: memoryview) -> int:
    header = _HEADER.unpack_from(batch)
    return int(header[0]) + int(header[6])


def _batch_rows(log: ReplicaLog, segment: int, batch: memoryview, run: str) -> Iterator[Row]:
    header = _HEADER.unpack_from(batch)
    attributes, producer_id, base_sequence = header[5], header[9], header[11]
    common = {
        **log.place(),
        "segment_base": segment,
        "batch_base": header[0],
        "batch_bytes": len(batch),
        "batch_crc": header[4],
        "leader_epoch": header[2],
        "producer_id": producer_id if producer_id >= 0 else None,
        "producer_epoch": header[10] if producer_id >= 0 else None,
        "transactional": bool(attributes & _TRANSACTIONAL),
    }
    crc_holds = crc32c(batch[_CRC_FROM:]) == header[4]
    try:
        records = list(DefaultRecordBatch(batch))
    except _UNREADABLE as error:
        log.damage.append(f"the batch at offset {header[0]} cannot be read: {error}")
        yield common | {"offset": header[0], "intact": False}
        return
    for record in records:
        row = common.copy()
        offset = row["offset"] = record.offset
        row["timestamp_ms"] = record.timestamp
        # Kafka's group coordinators write 0 without a producer
        if base_sequence >= 0 and producer_id >= 0:
            row["sequence"] = (base_sequence + offset - header[0]) % _SEQUENCES
        _add_content(row, record, log, run, crc_holds)
        yield row


def _add_content(row: Row, record: Any, log: ReplicaLog, run: str, crc_holds: bool) -> None:
    if isinstance(record, ControlRecord):
        row["control"] = "commit" if record.commit else "abort" if record.abort else None
        return
    key = record.key
    row["key"] = key_text(key)
    if log.ours:
        payload = decode(run, record.value, key, record.headers, of_client_ms(record))
        if log.copies:
            payload = decode_copy(run, record.value, key)
        row["value_id"] = payload.value_id
        row["intact"] = payload.intact and crc_holds


def _log_row(log: ReplicaLog, first_base: int, end: int) -> Row:
    data = log.folder.parent
    slot = (log.topic, log.partition)
    starts = _checkpoint(data / "log-start-offset-checkpoint")
    return log.place() | {
        "log_start": max(first_base, starts.get(slot, 0)),
        "log_end": end,
        "high_watermark": _checkpoint(data / "replication-offset-checkpoint").get(slot),
        "recovery_point": _checkpoint(data / "recovery-point-offset-checkpoint").get(slot),
        "epochs": msgspec.json.encode(_epochs(log.folder)).decode(),
    }


def _checkpoint(path: Path) -> dict[tuple[str, int], int]:
    """An offset checkpoint: version, count, then `topic partition offset` lines."""
    found = {}
    for line in _lines(path)[2:]:
        parts = line.split()
        if len(parts) == 3:
            found[parts[0], int(parts[1])] = int(parts[2])
    return found


def _epochs(folder: Path) -> dict[str, int]:
    """leader-epoch-checkpoint: version, count, then `epoch start_offset` lines."""
    pairs = [line.split() for line in _lines(folder / "leader-epoch-checkpoint")[2:]]
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2}


def _topic_id(folder: Path) -> str | None:
    for line in _lines(folder / "partition.metadata"):
        if line.startswith("topic_id:"):
            return line.split(":", 1)[1].strip() or None
    return None


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []
