"""Messages encoded by Kafka's own definitions (`message_schema`)."""

from __future__ import annotations

import struct
from base64 import urlsafe_b64decode
from typing import Any

from urteil.harness.protocol.message_schema import NUMBERS, FieldSchema, MessageSchema


def encode_varint(value: int) -> bytes:
    """An unsigned varint."""
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


def encode_message(schema: MessageSchema, version: int, **fields: Any) -> bytes:
    """The message; a field that is not given has its default. UUIDs have Kafka's base64 form."""
    return _fields(schema.fields, fields, version, version in schema.flexible)


def _fields(
    schemas: tuple[FieldSchema, ...], values: dict[str, Any], version: int, flexible: bool
) -> bytes:
    plain, tagged = b"", dict[int, bytes]()
    for schema in schemas:
        value = values.get(schema.name, schema.default)
        if version not in schema.versions:
            continue
        if version not in schema.tagged:
            plain += _field(schema, value, version, flexible)
        elif value != schema.default and schema.tag is not None:
            tagged[schema.tag] = _field(schema, value, version, flexible)
    if not flexible:
        return plain
    parts = [
        encode_varint(tag) + encode_varint(len(part)) + part for tag, part in sorted(tagged.items())
    ]
    return plain + encode_varint(len(parts)) + b"".join(parts)


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
        return NUMBERS[kind].pack(value)
    if kind == "bool":
        return bytes([value])
    if kind == "uuid":
        return urlsafe_b64decode(value + "==")
    if kind in ("string", "bytes", "records"):
        content = value.encode() if isinstance(value, str) else value
        length = -1 if content is None else len(content)
        return _length(length, "h" if kind == "string" else "i", flexible) + (content or b"")
    if nullable and value is None:
        return b"\xff"
    return (b"\x01" if nullable else b"") + _fields(schema.fields, value, version, flexible)


def _length(length: int, layout: str, flexible: bool) -> bytes:
    return encode_varint(length + 1) if flexible else struct.pack(f">{layout}", length)
