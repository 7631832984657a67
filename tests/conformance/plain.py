"""Answers as plain data that two clusters can be compared by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.schema import Struct


def plain(value: Any, names: Mapping[str, str]) -> Any:
    """A message as dicts and lists; strings that are keys of `names` become their values."""
    if isinstance(value, Struct):
        return {
            spec.name: _field(spec.name, getattr(value, spec.name), names) for spec in value.FIELDS
        }
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, (list, tuple)):
        return [plain(element, names) for element in value]
    return value


def _field(name: str, value: Any, names: Mapping[str, str]) -> Any:
    if name.endswith("error_code"):
        return ErrorCode(value).name
    return plain(value, names)
