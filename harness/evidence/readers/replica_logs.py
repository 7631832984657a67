"""The replica logs on disk after the run: Kafka's segments, read without any broker's code.

Sources beside `stored_batches`: `CheckpointFile`, `PartitionMetadataFile`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from kafka.record.default_records import ControlRecord

from urteil.harness.clients.payload import client_timestamp_ms, decode, decode_copy, key_text
from urteil.harness.evidence.readers.index_files import Layout, read_indexes
from urteil.harness.evidence.readers.old_messages import NO_TIME
from urteil.harness.evidence.readers.stored_batches import StoredBatch, read_batches

Row = dict[str, Any]

METADATA_TOPIC = "__cluster_metadata"
"""KRaft's own log: a quorum keeps it, not replicas of a topic."""
_FOLDER = re.compile(r"(?P<topic>[a-zA-Z0-9._-]+)-(?P<partition>\d+)")
_NUMBER = re.compile(r"[0-9]{1,18}")
_SEGMENT = re.compile(r"[0-9]{20}\.log")


@dataclass(slots=True)
class ReplicaLog:
    """One replica's log. `row` is its row of `logs`, complete once its records were read.

    `indexes` are its rows of `indexes`; `damage` has sentences about unreadable parts.
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
    broker: int,
    data: Path,
    topic_ids: Mapping[str, str],
    copies: Collection[str] = (),
    znode_ids: Mapping[str, str] | None = None,
    *,
    are_made: bool = False,
) -> list[ReplicaLog]:
    """The logs in one broker's log directory, without those marked for deletion. `topic_ids` are
    the run's own topics: only their values are decoded. Applications write to `copies` of them.
    `znode_ids` are the last topic ids in ZooKeeper, for releases that store no id beside some logs.
    If they `are_made` by the lab, all logs have them."""
    logs = []
    for folder in sorted(path for path in data.iterdir() if path.is_dir()):
        match = _FOLDER.fullmatch(folder.name)
        if match is None or folder.name.endswith(("-delete", "-future", "-stray")):
            continue
        topic = match["topic"]
        if topic == METADATA_TOPIC:
            continue
        stored = None if are_made else _topic_id(folder)
        topic_id = stored or (znode_ids or {}).get(topic) or topic_ids.get(topic)
        partition = int(match["partition"])
        ours = topic in topic_ids
        log = ReplicaLog(broker, topic, partition, folder, topic_id, ours, topic in copies)
        logs.append(log)
    return logs


def read_log(log: ReplicaLog, run: str) -> Iterator[Row]:
    """Rows of `replicas`, record by record; fills `log.row`, `log.records`, `log.damage`."""
    segments = sorted(path for path in log.folder.glob("*.log") if _SEGMENT.fullmatch(path.name))
    end = int(segments[0].stem) if segments else 0
    for segment in segments:
        end, layout = max(end, int(segment.stem)), Layout()
        for batch in read_batches(segment):
            if isinstance(batch, str):
                log.damage.append(f"{segment.name}: {batch}")
                break
            layout.add(batch.size, batch.base, batch.last, batch.max_timestamp_ms)
            for row in _batch_rows(log, int(segment.stem), batch, run):
                end = max(end, row["offset"] + 1)
                log.records += 1
                if batch.is_control:
                    layout.controls[row["offset"]] = row.get("control")
                yield row
            end = max(end, batch.last + 1)
        log.indexes += [log.place() | row for row in read_indexes(segment, layout)]
    log.row = _log_row(log, int(segments[0].stem) if segments else 0, end)
    log.row["active_base"] = int(segments[-1].stem) if segments else None


def _batch_rows(log: ReplicaLog, segment: int, batch: StoredBatch, run: str) -> Iterator[Row]:
    common = log.place() | {"segment_base": segment} | batch.columns
    if batch.error is not None:
        log.damage.append(f"the batch at offset {batch.base} cannot be read: {batch.error}")
        yield common | {"offset": batch.base, "intact": False}
        return
    for record in batch.records:
        row = common.copy()
        row["offset"] = record.offset
        row["timestamp_ms"] = NO_TIME if record.timestamp is None else record.timestamp
        sequence = batch.sequence(record.offset)
        if sequence is not None:
            row["sequence"] = sequence
        _add_content(row, record, log, run, batch.crc_holds)
        yield row


def _add_content(row: Row, record: Any, log: ReplicaLog, run: str, crc_holds: bool) -> None:
    if isinstance(record, ControlRecord):
        row["control"] = "commit" if record.commit else "abort" if record.abort else None
        return
    key = record.key
    row["key"] = key_text(key)
    if log.ours:
        payload = decode(run, record.value, key, record.headers, client_timestamp_ms(record))
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
        "epochs": msgspec.json.encode(_epochs(log)).decode(),
    }


def _checkpoint(path: Path) -> dict[tuple[str, int], int]:
    """An offset checkpoint: version, count, then `topic partition offset` lines. Invalid lines are
    ignored."""
    rows = [line.split() for line in _lines(path)[2:]]
    entries = [row for row in rows if len(row) == 3 and all(map(_NUMBER.fullmatch, row[1:]))]
    return {(topic, int(partition)): int(offset) for topic, partition, offset in entries}


def _epochs(log: ReplicaLog) -> dict[str, int]:
    """leader-epoch-checkpoint: version, count, then `epoch start_offset` lines."""
    epochs, name = {}, "leader-epoch-checkpoint"
    for line in filter(None, _lines(log.folder / name)[2:]):
        row = line.split()
        if len(row) == 2 and all(map(_NUMBER.fullmatch, row)):
            epochs[row[0]] = int(row[1])
        else:
            log.damage.append(f"{name}: the line {line!r} is not an entry")
    return epochs


def _topic_id(folder: Path) -> str | None:
    for line in _lines(folder / "partition.metadata"):
        if line.startswith("topic_id:"):
            return line.split(":", 1)[1].strip() or None
    return None


def _lines(path: Path) -> list[str]:
    return path.read_text(errors="replace").splitlines() if path.exists() else []
