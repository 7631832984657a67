"""The first snapshot of a dynamic quorum's metadata log (KIP-853).

`00000000000000000000-0000000000.checkpoint` holds the level of `kraft.version` and the initial
voters; some releases also store their features there. Kafka's StorageTool writes it once for a
quorum, with `--initial-controllers`. The lab encodes its control records by the message definitions
of the release, which needs no JVM. A controller to be added later has the same file without voters.
Sources: KIP-853, `RecordsSnapshotWriter`, `Formatter`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from crc32c import crc32c
from kafka.record.default_records import DefaultRecordBatchBuilder

from urteil.harness.dependencies.kafka import kafka_jar
from urteil.harness.protocol.message_encoder import encode_message
from urteil.harness.protocol.message_schema import MessageSchema, read_schemas

CHECKPOINT = Path("__cluster_metadata-0", f"{0:020}-{0:010}.checkpoint")
DYNAMIC = 1
"""From this level of `kraft.version` on, a quorum is dynamic."""
_CONTROL = 0x20
_HEADER, _FOOTER, _KRAFT_VERSION, _VOTERS = 3, 4, 5, 6
"""Types of control records."""
_NAMES = {
    _HEADER: "SnapshotHeaderRecord",
    _FOOTER: "SnapshotFooterRecord",
    _KRAFT_VERSION: "KRaftVersionRecord",
    _VOTERS: "VotersRecord",
}
_BASE, _LENGTH, _ATTRIBUTES, _CRC = 0, 8, 21, 17
_BEFORE_LENGTH = 12

_Record = tuple[int, dict[str, object]]
"""The type of a control record and its fields."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Voter:
    """One voter: its node id, the id of its metadata log's directory, and its address."""

    node: int
    directory: str
    host: str
    port: int


def write_checkpoint(
    log_dir: Path, version: str, voters: Sequence[Voter], *, listener: str
) -> None:
    """Write the snapshot into a log directory; it keeps the features of an existing one.

    Without voters it is the snapshot of a controller to be added. Some releases have no such
    snapshot; then nothing is written.
    """
    file = log_dir / CHECKPOINT
    former = _split(file.read_bytes()) if file.exists() else []
    if not voters and not former:
        return
    schemas = read_schemas(
        kafka_jar("kafka-clients", version), "common/message", list(_NAMES.values())
    )
    first: list[_Record] = [(_HEADER, {}), (_KRAFT_VERSION, {"KRaftVersion": DYNAMIC})]
    if voters:
        first.append((_VOTERS, {"Voters": [_voter(voter, listener) for voter in voters]}))
    data, end = _batch(schemas, first, 0), len(first)
    for batch, records in former[1:-1]:
        struct.pack_into(">q", batch, _BASE, end)
        data += batch
        end += records
    data += _batch(schemas, [(_FOOTER, {})], end)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)  # Kafka's file is read-only
    file.write_bytes(data)


def _voter(voter: Voter, listener: str) -> dict[str, object]:
    return {
        "VoterId": voter.node,
        "VoterDirectoryId": voter.directory,
        "Endpoints": [{"Name": listener, "Host": voter.host, "Port": voter.port}],
        "KRaftVersionFeature": {"MinSupportedVersion": 0, "MaxSupportedVersion": DYNAMIC},
    }


def _split(data: bytes) -> list[tuple[bytearray, int]]:
    """The batches of a snapshot, each with the number of its records."""
    batches, at = [], 0
    while at < len(data):
        (length,) = struct.unpack_from(">i", data, at + _LENGTH)
        batch = bytearray(data[at : at + length + _BEFORE_LENGTH])
        (last_delta,) = struct.unpack_from(">i", batch, 23)
        batches.append((batch, last_delta + 1))
        at += len(batch)
    return batches


def _batch(schemas: dict[str, MessageSchema], records: Sequence[_Record], base: int) -> bytes:
    """A control batch."""
    builder = DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, 1 << 20)
    for number, (kind, fields) in enumerate(records):
        value = encode_message(schemas[_NAMES[kind]], 0, **fields)
        builder.append(number, 0, struct.pack(">hh", 0, kind), value, [])
    data = bytearray(builder.build())
    struct.pack_into(">q", data, _BASE, base)
    struct.pack_into(">i", data, 12, 0)
    struct.pack_into(">h", data, _ATTRIBUTES, _CONTROL)
    struct.pack_into(">I", data, _CRC, crc32c(bytes(data[_ATTRIBUTES:])))
    return bytes(data)
