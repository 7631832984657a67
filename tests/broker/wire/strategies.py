"""Hypothesis strategies for messages, made from their field tables."""

from __future__ import annotations

import dataclasses
from typing import Any
from uuid import UUID

from hypothesis import strategies as st

from urteil.broker.wire.messages import REQUESTS, RESPONSES
from urteil.broker.wire.schema import Field, Message, Struct

ALL_MESSAGES = [*REQUESTS.values(), *RESPONSES.values()]

_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_TEXT = st.text(alphabet="aZ0._-éλ漢", max_size=6) | st.just("x" * 200)


def scalar(element: str) -> st.SearchStrategy[Any]:
    if element in _BITS:
        bound = 1 << (_BITS[element] - 1)
        return st.integers(-bound, bound - 1)
    return {
        "uint16": st.integers(0, (1 << 16) - 1),
        "bool": st.booleans(),
        "float64": st.floats(allow_nan=False),
        "string": _TEXT,
        "bytes": st.binary(max_size=5),
        "records": st.binary(max_size=5) | st.just(b"r" * 3000),
        "uuid": st.builds(UUID, bytes=st.binary(min_size=16, max_size=16)),
    }[element]


def messages(cls: type[Struct], scalars: Any = None) -> st.SearchStrategy[Any]:
    """Instances of `cls` with a value in every field, nulls wherever some version has them.

    `scalars(spec)` may give another strategy for a field of a plain type.
    """
    return st.builds(cls, **{spec.name: _values(spec, scalars) for spec in cls.FIELDS})


def _values(spec: Field, scalars: Any) -> st.SearchStrategy[Any]:
    values = scalars(spec) if scalars else None
    if spec.struct is not None:
        values = messages(spec.struct, scalars)
    elif values is None:
        values = scalar(spec.element)
    if spec.is_array:
        values = st.lists(values, max_size=2).map(tuple)
    if spec.nullable.last >= 0 or spec.element == "records":
        values = st.none() | values
    return values


def project(message: Any, version: int) -> Any:
    """The message as `version` can carry it: absent fields at their defaults, no wrong nulls."""
    return dataclasses.replace(
        message,
        **{
            spec.name: _projected(spec, getattr(message, spec.name), version)
            for spec in message.FIELDS
        },
    )


def _projected(spec: Field, value: Any, version: int) -> Any:
    if version not in spec.versions:
        return spec.make_default()
    if value is None and version not in spec.nullable:
        if spec.is_array:
            return ()
        return {"string": "", "bytes": b"", "records": b""}[spec.element]
    if spec.struct is None or value is None:
        return value
    if spec.is_array:
        return tuple(project(item, version) for item in value)
    return project(value, version)


def versions(cls: type[Message]) -> range:
    return range(cls.MIN_VERSION, cls.MAX_VERSION + 1)


def encoded(message: Message, version: int) -> bytes:
    return b"".join(message.encode(version))
