"""Segments of KRaft's metadata log, encoded by Kafka's own definitions."""

from __future__ import annotations

import struct
from typing import Any

from crc32c import crc32c
from kafka.record.default_records import DefaultRecordBatchBuilder

from urteil.harness.evidence.readers.metadata_log import VOTERS, RecordSchemas
from urteil.harness.protocol.message_encoder import encode_message, encode_varint

FIRST_SEGMENT = f"{0:020}.log"
CONTROL = 0x20
LEADER_CHANGE_KEY, VOTERS_KEY = struct.pack(">hh", 0, 2), struct.pack(">hh", 0, 6)


class SegmentWriter:
    """Batches of one segment, as the active controller writes them."""

    def __init__(self, schemas: RecordSchemas, base: int = 0) -> None:
        self._schemas = {schema.name: schema for schema in schemas.by_type.values()}
        self._leader_change = schemas.leader_change
        self._voters = schemas.control[VOTERS]
        self.data, self.end, self.epoch = b"", base, 0

    def lead(
        self,
        controller: int,
        epoch: int,
        wall_ms: int = 0,
        *,
        voters: tuple[int, ...] = (),
        granted: tuple[int, ...] = (),
    ) -> None:
        """A new active controller's first batch."""
        self.epoch = epoch
        lists = {
            name: [{"VoterId": voter} for voter in some]
            for name, some in (("Voters", voters), ("GrantingVoters", granted))
        }
        value = encode_message(self._leader_change, 0, Version=0, LeaderId=controller, **lists)
        self._batch([(LEADER_CHANGE_KEY, value)], wall_ms, CONTROL)

    def change_voters(self, voters: dict[int, str], *, wall_ms: int = 0) -> None:
        """A record of a dynamic quorum's voters, directory ids by node id."""
        rows = [
            {"VoterId": node, "VoterDirectoryId": text, "Endpoints": []}
            | {"KRaftVersionFeature": {"MinSupportedVersion": 0, "MaxSupportedVersion": 1}}
            for node, text in voters.items()
        ]
        value = encode_message(self._voters, 0, Version=0, Voters=rows)
        self._batch([(VOTERS_KEY, value)], wall_ms, CONTROL)

    def write(
        self, *records: tuple[str, dict[str, Any]], wall_ms: int = 0, version: int = 0
    ) -> None:
        """One batch of records, each a definition's name and its fields."""
        values = []
        for name, fields in records:
            schema = self._schemas[name]
            head = encode_varint(1) + encode_varint(schema.api_key or 0) + encode_varint(version)
            values.append((None, head + encode_message(schema, version, **fields)))
        self._batch(values, wall_ms, 0)

    def write_value(self, value: bytes) -> None:
        """One batch of one record with these bytes."""
        self._batch([(None, value)], 0, 0)

    def _batch(
        self, records: list[tuple[bytes | None, bytes]], wall_ms: int, attributes: int
    ) -> None:
        builder = DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, 1 << 20)
        for number, (key, value) in enumerate(records):
            builder.append(number, wall_ms, key, value, [])
        data = bytearray(builder.build())
        struct.pack_into(">q", data, 0, self.end)
        struct.pack_into(">i", data, 12, self.epoch)
        struct.pack_into(">h", data, 21, attributes)
        struct.pack_into(">I", data, 17, crc32c(bytes(data[21:])))
        self.data += bytes(data)
        self.end += len(records)
