"""Answers as plain data that two clusters can be compared by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.primitives import ZERO_UUID
from urteil.broker.wire.schema import Struct

OWN = {"host", "port", "cluster_id", "controller_id", "node_id", "leader_epoch_of_controller"}
"""Fields whose value is each cluster's own: only whether they are set is compared."""

TEXTS = {"error_message", "batch_index_error_message", "documentation"}
"""Sentences for people: only whether there is one is compared."""

LEFT_OUT = {"throttle_time_ms"}


def plain(value: Any, names: Mapping[str, str]) -> Any:
    """A message as dicts and lists; strings that are keys of `names` become their values."""
    if isinstance(value, Struct):
        return {
            spec.name: _field(spec.name, getattr(value, spec.name), names)
            for spec in value.FIELDS
            if spec.name not in LEFT_OUT
        }
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, UUID):
        return "no id" if value == ZERO_UUID else "an id"
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, (list, tuple)):
        return [plain(one, names) for one in value]
    return value


def _field(name: str, value: Any, names: Mapping[str, str]) -> Any:
    if name.endswith("error_code"):
        return ErrorCode(value).name
    if name in OWN:
        return "none" if value in (None, "", -1) else "set"
    if name in TEXTS:
        return "a text" if value else value
    return plain(value, names)


def differences(expected: Any, answered: Any, path: str = "") -> list[str]:
    """Where two plain answers differ, a line each."""
    if isinstance(expected, dict) and isinstance(answered, dict):
        keys = [*expected, *(key for key in answered if key not in expected)]
        pairs = [(f"{path}.{key}", expected.get(key), answered.get(key)) for key in keys]
    elif (
        isinstance(expected, list) and isinstance(answered, list) and len(expected) == len(answered)
    ):
        both = zip(expected, answered, strict=True)
        pairs = [(f"{path}[{_label(one, n)}]", one, other) for n, (one, other) in enumerate(both)]
    else:
        same = expected == answered
        return [] if same else [f"{path or 'answer'}: {expected!r} expected, {answered!r} answered"]
    return [line for where, one, other in pairs for line in differences(one, other, where)]


def _label(one: Any, number: int) -> Any:
    return one.get("name", number) if isinstance(one, dict) else number
