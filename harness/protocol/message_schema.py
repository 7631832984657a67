"""Kafka's own message definitions, read from the jars of the release that wrote the message.

Kafka's jars hold one JSON file a message: its fields with type, versions, nullable versions and
tags, from which Kafka generates its classes. `MessageSchema` decodes a message by such a file, so
that a new release needs no new code. Sources: the README of Kafka's message generator
(`clients/src/main/resources/common/message`), KIP-482 (flexible versions and tagged fields).
"""

from __future__ import annotations

import json
import re
import struct
import uuid
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Value = dict[str, Any]

_COMMENT = re.compile(r"^\s*//.*$|(?<=[\s,{\[])//[^\n\"]*$", re.MULTILINE)
NUMBERS = {
    "int8": struct.Struct(">b"),
    "int16": struct.Struct(">h"),
    "uint16": struct.Struct(">H"),
    "int32": struct.Struct(">i"),
    "uint32": struct.Struct(">I"),
    "int64": struct.Struct(">q"),
    "float64": struct.Struct(">d"),
}


class UnreadableMessage(ValueError):
    """The bytes are not a message of this definition and version."""


def encode_uuid(value: uuid.UUID) -> str:
    """A UUID as Kafka prints it: 22 characters of base64."""
    return urlsafe_b64encode(value.bytes).decode().rstrip("=")


@dataclass(frozen=True, slots=True)
class Versions:
    """A range of versions, as `2+`, `0-3`, `1` or `none`; `last` None is open."""

    first: int
    last: int | None

    @classmethod
    def parse(cls, text: str) -> Versions:
        if text == "none":
            return cls(0, -1)
        if text.endswith("+"):
            return cls(int(text[:-1]), None)
        first, _, last = text.partition("-")
        return cls(int(first), int(last or first))

    def __contains__(self, version: int) -> bool:
        return self.first <= version and (self.last is None or version <= self.last)


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldSchema:
    """One field. `kind` is the type of one element, `is_array` whether it stands in an array."""

    name: str
    kind: str
    is_array: bool
    versions: Versions
    nullable: Versions
    tagged: Versions
    tag: int | None
    default: Any
    fields: tuple[FieldSchema, ...]

    @classmethod
    def parse(cls, raw: Value, structs: Mapping[str, list[Value]]) -> FieldSchema:
        kind = raw["type"].removeprefix("[]")
        is_array = raw["type"].startswith("[]")
        fields = raw.get("fields") or structs.get(kind, [])
        return cls(
            name=raw["name"],
            kind=kind,
            is_array=is_array,
            versions=Versions.parse(raw["versions"]),
            nullable=Versions.parse(raw.get("nullableVersions", "none")),
            tagged=Versions.parse(raw.get("taggedVersions", "none")),
            tag=None if "tag" not in raw else int(raw["tag"]),
            default=_default(kind, raw.get("default"), is_array),
            fields=tuple(cls.parse(field, structs) for field in fields),
        )


class MessageSchema:
    """One message. `decode` gives its fields by Kafka's names; a field that a version lacks has its
    default. UUIDs have Kafka's base64 form, bytes stay bytes. A message that the release removed
    has no version and no fields."""

    def __init__(self, text: str) -> None:
        raw = json.loads(_COMMENT.sub("", text))
        structs = {struct["name"]: struct["fields"] for struct in raw.get("commonStructs", [])}
        self.name: str = raw["name"]
        self.api_key: int | None = raw.get("apiKey")
        self.valid = Versions.parse(raw["validVersions"])
        self.flexible = Versions.parse(raw.get("flexibleVersions", "none"))
        self.fields = tuple(FieldSchema.parse(field, structs) for field in raw.get("fields", []))

    def decode(self, data: bytes | memoryview, version: int) -> Value:
        """The message in all of `data`. Raises UnreadableMessage."""
        if version not in self.valid:
            raise UnreadableMessage(f"{self.name} has no version {version} in this release")
        reader = _Reader(bytes(data), version, version in self.flexible)
        try:
            value = reader.fields(self.fields)
        except (struct.error, IndexError, UnicodeDecodeError) as error:
            raise UnreadableMessage(f"{self.name} version {version}: {error}") from error
        if reader.at != len(data):
            left = len(data) - reader.at
            raise UnreadableMessage(f"{self.name} version {version}: {left} bytes are left over")
        return value


def read_schemas(jar: Path, folder: str, names: Iterable[str] = ()) -> dict[str, MessageSchema]:
    """The definitions in a jar's folder by name: those of `names` that it has, or all."""
    name = "|".join(map(re.escape, names)) or r"\w+"
    with zipfile.ZipFile(jar) as files:
        paths = [p for p in files.namelist() if re.fullmatch(rf"{folder}/({name})\.json", p)]
        schemas = [MessageSchema(files.read(path).decode()) for path in paths]
    return {schema.name: schema for schema in schemas}


def unsigned_varint(data: bytes, at: int) -> tuple[int, int]:
    """An unsigned varint and the position behind it. Raises IndexError at a premature end."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 28:
            raise IndexError("a varint is too long")


class _Reader:
    """A position in one message."""

    def __init__(self, data: bytes, version: int, is_flexible: bool) -> None:
        self.data = data
        self.at = 0
        self.version = version
        self.is_flexible = is_flexible

    def fields(self, schemas: tuple[FieldSchema, ...]) -> Value:
        present = [schema for schema in schemas if self.version in schema.versions]
        tagged = {schema.tag: schema for schema in present if self.version in schema.tagged}
        value = {schema.name: schema.default for schema in schemas}
        for schema in present:
            if self.version not in schema.tagged:
                value[schema.name] = self._field(schema)
        if self.is_flexible:
            for _ in range(self._varint()):
                tag, size = self._varint(), self._varint()
                content = self._bytes(size)
                if tag in tagged:
                    part = _Reader(content, self.version, self.is_flexible)
                    value[tagged[tag].name] = part._field(tagged[tag])
        return value

    def _field(self, schema: FieldSchema) -> Any:
        if not schema.is_array:
            return self._value(schema, may_be_null=self.version in schema.nullable)
        count = self._length("i")
        return None if count < 0 else [self._value(schema) for _ in range(count)]

    def _value(self, schema: FieldSchema, *, may_be_null: bool = False) -> Any:
        kind = schema.kind
        if layout := NUMBERS.get(kind):
            (value,) = layout.unpack(self._bytes(layout.size))
            return value
        if kind == "bool":
            return self._bytes(1) != b"\0"
        if kind == "uuid":
            return encode_uuid(uuid.UUID(bytes=self._bytes(16)))
        if kind in ("string", "bytes", "records"):
            size = self._length("h" if kind == "string" else "i")
            content = None if size < 0 else self._bytes(size)
            return content.decode() if kind == "string" and content is not None else content
        if may_be_null and self._bytes(1) == b"\xff":
            return None
        return self.fields(schema.fields)

    def _length(self, layout: str) -> int:
        """The length of an array, a string or bytes; -1 for null."""
        if self.is_flexible:
            return self._varint() - 1
        (length,) = struct.unpack(f">{layout}", self._bytes(struct.calcsize(layout)))
        return int(length)

    def _varint(self) -> int:
        value, self.at = unsigned_varint(self.data, self.at)
        return value

    def _bytes(self, size: int) -> bytes:
        if self.at + size > len(self.data):
            raise IndexError(f"{size} bytes at {self.at} of {len(self.data)}")
        self.at += size
        return self.data[self.at - size : self.at]


def _default(kind: str, text: Any, is_array: bool) -> Any:
    """The value that a message without the field stands for."""
    if text in ("null", None) and (text == "null" or kind in ("bytes", "records")):
        return None if text == "null" else b""
    if is_array:
        return []
    if kind in NUMBERS:
        return float(text or 0) if kind == "float64" else int(str(text or 0), 0)
    if kind == "bool":
        return str(text).lower() == "true"
    if kind == "uuid":
        return encode_uuid(uuid.UUID(int=0))
    return (text or "") if kind == "string" else None
