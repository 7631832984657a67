"""Every record of KRaft's metadata log, from a node's own copy on disk.

`__cluster_metadata-0` is a log of Kafka's own format; a batch's leader epoch is the controller
epoch, its timestamp the active controller's wall clock. A record's value is a frame version (1),
the record's type and its version as unsigned varints, then a message of the definitions in the
running release's jars (`MetadataRecordSerde`). Control records: `LeaderChangeMessage` (type 2)
names a new active controller. A snapshot (`OFFSET-EPOCH.checkpoint`) has the same format and stands
for all records below its offset. Sources: KIP-595, KIP-630, KIP-631.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from urteil.harness.dependencies.kafka import kafka_jar
from urteil.harness.evidence.readers.stored_batches import StoredBatch, read_batches
from urteil.harness.protocol.message_schema import (
    MessageSchema,
    UnreadableMessage,
    read_schemas,
    unsigned_varint,
)

FOLDER = "__cluster_metadata-0"
LEADER_CHANGE = "LeaderChangeMessage"
VOTERS = "VotersRecord"
FEATURE_LEVEL = "FeatureLevelRecord"

_FRAME_VERSION = 1
_CONTROL_TYPES = {
    2: LEADER_CHANGE,
    3: "SnapshotHeaderRecord",
    4: "SnapshotFooterRecord",
    5: "KRaftVersionRecord",
    6: VOTERS,
}
_DECODED = (LEADER_CHANGE, VOTERS)
"""The control records whose fields are decoded."""
_SEGMENT = re.compile(r"(\d{20})\.log")
_SNAPSHOT = re.compile(r"(\d{20})-(\d{10})\.checkpoint")


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataRecord:
    """One record. `name` is the definition's, `fields` are by Kafka's names.

    `fields` is empty for control records other than a leader change and a record of voters. All
    records of a snapshot have the offset in front of its end, as offset and as `batch`.
    """

    offset: int
    batch: int
    epoch: int
    wall_ms: int
    name: str
    version: int
    fields: dict[str, Any]


@dataclass(slots=True)
class MetadataLog:
    """The content of one copy; `damage` in sentences."""

    folder: Path
    records: int = 0
    start: int | None = None
    end: int = 0
    damage: list[str] = field(default_factory=list)


class RecordSchemas:
    """The definitions of one release: those of metadata records by type, and of control records by
    name. Releases before 3.9 define no record of voters."""

    def __init__(self, metadata_jar: Path, clients_jar: Path) -> None:
        records = read_schemas(metadata_jar, "common/metadata").values()
        self.by_type = {schema.api_key: schema for schema in records}
        self.control = read_schemas(clients_jar, "common/message", _DECODED)

    @property
    def leader_change(self) -> MessageSchema:
        return self.control[LEADER_CHANGE]

    def decode(self, value: bytes) -> tuple[str, int, dict[str, Any]]:
        """Name, version and fields of a metadata record. Raises UnreadableMessage."""
        try:
            frame, at = unsigned_varint(value, 0)
            kind, at = unsigned_varint(value, at)
            version, at = unsigned_varint(value, at)
        except IndexError as error:
            raise UnreadableMessage(f"the record's head is cut: {error}") from error
        if frame != _FRAME_VERSION or kind not in self.by_type:
            raise UnreadableMessage(f"no record of type {kind} in frame version {frame}")
        schema = self.by_type[kind]
        return schema.name, version, schema.decode(value[at:], version)


def release_schemas(version: str) -> RecordSchemas:
    """The definitions in a release's own jars, downloaded on first use."""
    return RecordSchemas(kafka_jar("kafka-metadata", version), kafka_jar("kafka-clients", version))


def read_metadata(log: MetadataLog, schemas: RecordSchemas) -> Iterator[MetadataRecord]:
    """The records of one copy in order of offset; fills `log`. A copy that begins with a snapshot
    has the snapshot's records first. A damaged tail ends its segment; a record that the release
    does not define is skipped. `log.damage` has both."""
    segments = find_segments(log.folder)
    start = first_offset(segments)
    snapshot = find_snapshot(log.folder, segments)
    if snapshot is not None:
        for batch in _batches(snapshot, log):
            yield from parse_records(
                batch, schemas, log, snapshot_offset=int(snapshot.name[:20]) - 1
            )
        start = max(start, int(snapshot.name[:20]))
    elif start > 0:
        log.damage.append(lacks_snapshot(start))
    log.start, log.end = start, start
    for segment in segments:
        for batch in _batches(segment, log):
            if batch.last < start:
                continue
            if batch.base > log.end:
                log.damage.append(
                    f"{segment.name}: offsets {log.end} to {batch.base - 1} are missing"
                )
            yield from parse_records(batch, schemas, log)
            log.end = batch.last + 1


def find_segments(folder: Path) -> list[Path]:
    """The segments of a copy in order of offset."""
    return sorted(path for path in folder.glob("*.log") if _SEGMENT.fullmatch(path.name))


def first_offset(segments: Sequence[Path]) -> int:
    """The offset at which the segments begin."""
    return int(segments[0].stem) if segments else 0


def find_snapshot(folder: Path, segments: Sequence[Path]) -> Path | None:
    """The snapshot of the records that the segments lack; none if they begin at offset 0."""
    if segments and first_offset(segments) == 0:
        return None
    snapshots = sorted(path for path in folder.glob("*") if _SNAPSHOT.fullmatch(path.name))
    return snapshots[-1] if snapshots else None


def lacks_snapshot(start: int) -> str:
    return f"the log begins at offset {start} without a snapshot"


def _batches(file: Path, log: MetadataLog) -> Iterator[StoredBatch]:
    for batch in read_batches(file):
        if isinstance(batch, str):
            log.damage.append(f"{file.name}: {batch}")
            return
        if not batch.crc_holds:
            log.damage.append(f"{file.name}: the batch at offset {batch.base} has a wrong CRC")
            return
        if batch.error is not None:
            log.damage.append(f"{file.name}: the batch at offset {batch.base}: {batch.error}")
            continue
        yield batch


def parse_records(
    batch: StoredBatch,
    schemas: RecordSchemas,
    log: MetadataLog,
    *,
    snapshot_offset: int | None = None,
) -> Iterator[MetadataRecord]:
    """The records of one batch; those of a snapshot have its offset."""
    for record in batch.records:
        offset = record.offset if snapshot_offset is None else snapshot_offset
        try:
            if batch.is_control:
                name, version, fields = _decode_control(record, schemas)
            else:
                name, version, fields = schemas.decode(record.value)
        except UnreadableMessage as error:
            log.damage.append(f"the record at offset {offset}: {error}")
            continue
        log.records += 1
        yield MetadataRecord(
            offset=offset,
            batch=batch.base if snapshot_offset is None else snapshot_offset,
            epoch=batch.columns["leader_epoch"],
            wall_ms=record.timestamp,
            name=name,
            version=version,
            fields=fields,
        )


def _decode_control(record: Any, schemas: RecordSchemas) -> tuple[str, int, dict[str, Any]]:
    """A control record's key has a version and the type; its value has its version first."""
    key, value = record.key, record.value
    name = _CONTROL_TYPES.get(int.from_bytes(key[2:4], "big"), "unknown control record")
    if name not in schemas.control:
        return name, 0, {}
    version = int.from_bytes(value[:2], "big")
    return name, version, schemas.control[name].decode(value, version)


def read_features(snapshots: Iterable[Path], version: str) -> dict[str, int]:
    """The levels of features in snapshots of this release."""
    levels: dict[str, int] = {}
    for snapshot in snapshots:
        schemas, log = release_schemas(version), MetadataLog(snapshot.parent)
        for batch in _batches(snapshot, log):
            for record in parse_records(batch, schemas, log):
                if record.name == FEATURE_LEVEL:
                    levels[record.fields["Name"]] = record.fields["FeatureLevel"]
    return levels


def voters_of(record: MetadataRecord) -> dict[int, str] | None:
    """The directory ids of a dynamic quorum's voters by node id; None for another record."""
    if record.name != VOTERS:
        return None
    return {voter["VoterId"]: voter["VoterDirectoryId"] for voter in record.fields["Voters"]}
