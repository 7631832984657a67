"""Segments of KRaft's metadata log, encoded by Kafka's own definitions."""

from __future__ import annotations

import struct
from base64 import urlsafe_b64decode
from typing import Any

from crc32c import crc32c
from kafka.record.default_records import DefaultRecordBatchBuilder

from urteil.harness.evidence.readers.metadata_log import RecordSchemas
from urteil.harness.protocol.message_schema import FieldSchema, MessageSchema

NUMBERS = {"int8": "b", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I",
           "int64": "q", "float64": "d"}  # fmt: skip
FIRST_SEGMENT = f"{0:020}.log"
CONTROL = 0x20
LEADER_CHANGE_KEY = struct.pack(">hh", 0, 2)


def varint(value: int) -> bytes:
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


def encode(schema: MessageSchema, version: int, **fields: Any) -> bytes:
    """The message; a field that is not given has its default."""
    return _fields(schema.fields, fields, version, version in schema.flexible)


def _fields(schemas: tuple[FieldSchema, ...], values: dict, version: int, flexible: bool) -> bytes:
    plain, tagged = b"", {}
    for schema in schemas:
        value = values.get(schema.name, schema.default)
        if version not in schema.versions:
            continue
        if version not in schema.tagged:
            plain += _field(schema, value, version, flexible)
        elif value != schema.default:
            tagged[schema.tag] = _field(schema, value, version, flexible)
    if not flexible:
        return plain
    fields = [varint(tag) + varint(len(part)) + part for tag, part in sorted(tagged.items())]
    return plain + varint(len(fields)) + b"".join(fields)


def _field(schema: FieldSchema, value: Any, version: int, flexible: bool) -> bytes:
    if not schema.is_array:
        nullable = version in schema.nullable
        return _value(schema, value, version, flexible, nullable=nullable)
    if value is None:
        return _length(-1, "i", flexible)
    elements = [_value(schema, element, version, flexible) for element in value]
    return _length(len(value), "i", flexible) + b"".join(elements)


def _value(
    schema: FieldSchema, value: Any, version: int, flexible: bool, *, nullable: bool = False
) -> bytes:
    kind = schema.kind
    if kind in NUMBERS:
        return struct.pack(f">{NUMBERS[kind]}", value)
    if kind == "bool":
        return bytes([value])
    if kind == "uuid":
        return urlsafe_b64decode(value + "==")
    if kind in ("string", "bytes", "records"):
        content = value.encode() if isinstance(value, str) else value
        length = _length(-1 if value is None else len(content), "h" if kind == "string" else "i",
                         flexible)  # fmt: skip
        return length + (content or b"")
    if nullable and value is None:
        return b"\xff"
    return (b"\x01" if nullable else b"") + _fields(schema.fields, value, version, flexible)


def _length(length: int, layout: str, flexible: bool) -> bytes:
    return varint(length + 1) if flexible else struct.pack(f">{layout}", length)


class SegmentWriter:
    """Batches of one segment, as the active controller writes them."""

    def __init__(self, schemas: RecordSchemas, base: int = 0) -> None:
        self._schemas = {schema.name: schema for schema in schemas.by_type.values()}
        self._leader_change = schemas.leader_change
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
        value = encode(self._leader_change, 0, Version=0, LeaderId=controller, **lists)
        self._batch([(LEADER_CHANGE_KEY, value)], wall_ms, CONTROL)

    def write(
        self, *records: tuple[str, dict[str, Any]], wall_ms: int = 0, version: int = 0
    ) -> None:
        """One batch of records, each a definition's name and its fields."""
        values = []
        for name, fields in records:
            schema = self._schemas[name]
            head = varint(1) + varint(schema.api_key or 0) + varint(version)
            values.append((None, head + encode(schema, version, **fields)))
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
