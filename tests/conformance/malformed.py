"""Bodies written field by field, so that any field can be spoilt.

A second encoder, read off the field tables; the broker's own refuses to write what is wrong.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Any, Final
from uuid import UUID

from urteil.broker.wire.primitives import encode_uvarint
from urteil.broker.wire.schema import Field, Message, Struct

NUMBERS: Final = {
    "int8": ">b", "int16": ">h", "uint16": ">H", "int32": ">i", "uint32": ">I", "int64": ">q",
    "float64": ">d", "bool": ">?",
}  # fmt: skip
TEXT: Final = "never-there"


def sample(message: type[Message], version: int, *, times: int = 1) -> dict[str, Any]:
    """Values for every field: numbers 0, texts that name nothing, arrays of `times` alike."""
    return _values(message, message, version, times)


def _values(part: type[Struct], message: type[Message], version: int, times: int) -> dict[str, Any]:
    return {
        spec.name: _value(spec, message, version, times) for spec in _fields(part, message, version)
    }


def _value(spec: Field, message: type[Message], version: int, times: int) -> Any:
    if spec.is_struct:
        assert spec.struct is not None
        value: Any = _values(spec.struct, message, version, times)
    elif spec.element in ("string", "bytes", "records"):
        nullable = version in spec.nullable and not spec.is_array
        value = None if nullable else TEXT.encode() if spec.element == "string" else b""
    else:
        value = UUID(int=0) if spec.element == "uuid" else 0
    return [value] * times if spec.is_array else value


def _fields(part: type[Struct], message: type[Message], version: int) -> Iterator[Field]:
    for spec in part.FIELDS:
        tagged = version >= message.FLEXIBLE_FROM and version in spec.tagged
        if version in spec.versions and not tagged:
            yield spec


def paths(message: type[Message], version: int) -> Iterator[tuple[str, Field]]:
    """Every field of a version with its path from the outside in."""
    yield from _paths(message, message, version, "")


def _paths(
    part: type[Struct], message: type[Message], version: int, above: str
) -> Iterator[tuple[str, Field]]:
    for spec in _fields(part, message, version):
        yield above + spec.name, spec
        if spec.is_struct:
            assert spec.struct is not None
            yield from _paths(spec.struct, message, version, f"{above}{spec.name}.")


def body(
    message: type[Message],
    version: int,
    values: Mapping[str, Any],
    *,
    spoilt: Mapping[str, bytes] | None = None,
    tags: bytes = b"\0",
) -> bytes:
    """The body; `spoilt` has other bytes for the fields at some paths, `tags` is the section of
    tagged fields at its end."""
    writer = _Writer(message, version, spoilt or {}, tags)
    return writer.struct(message, values, "", tags)


def length(message: type[Message], version: int, spec: Field, count: int) -> bytes:
    """The length of a string, bytes or array as it is written, -1 for null; a wrong one too."""
    if version >= message.FLEXIBLE_FROM:
        return encode_uvarint((count + 1) & 0xFFFFFFFF)
    short = spec.element == "string" and not spec.is_array
    return struct.pack(">h" if short else ">i", min(count, 32767) if short else count)


class _Writer:
    def __init__(
        self, message: type[Message], version: int, spoilt: Mapping[str, bytes], tags: bytes
    ) -> None:
        self._message, self._version, self._spoilt = message, version, spoilt
        self._flexible = version >= message.FLEXIBLE_FROM

    def struct(
        self, part: type[Struct], values: Mapping[str, Any], above: str, tags: bytes = b"\0"
    ) -> bytes:
        out = b""
        for spec in _fields(part, self._message, self._version):
            path = above + spec.name
            out += self._spoilt.get(path) or self._field(spec, values[spec.name], path)
        return out + tags if self._flexible else out

    def _field(self, spec: Field, value: Any, path: str) -> bytes:
        if not spec.is_array:
            return self._value(spec, value, path)
        count = length(self._message, self._version, spec, len(value))
        return count + b"".join(self._value(spec, element, path, inside=True) for element in value)

    def _value(self, spec: Field, value: Any, path: str, *, inside: bool = False) -> bytes:
        if spec.is_struct:
            assert spec.struct is not None
            return self.struct(spec.struct, value, f"{path}.")
        if spec.element in NUMBERS:
            return struct.pack(NUMBERS[spec.element], value)
        if spec.element == "uuid":
            return bytes(value.bytes)
        short = spec.element == "string" and not self._flexible
        count = -1 if value is None else len(value)
        if self._flexible:
            return encode_uvarint(count + 1) + (value or b"")
        return struct.pack(">h" if short else ">i", count) + (value or b"")
