"""Requests of every API with an array of many elements, made from the declarations of messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar
from uuid import UUID

from urteil.broker.api.registry import SERVED, load_handlers
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Field, Message, Struct

S = TypeVar("S", bound=Struct)

NOT_FOR_CLIENTS = {
    ApiKey.LEADER_AND_ISR,
    ApiKey.STOP_REPLICA,
    ApiKey.CONTROLLED_SHUTDOWN,
}
"""What only a controller of the same cluster sends: they change what the broker hosts."""


def wide_requests(count: int) -> Iterator[tuple[str, ApiKey, int, Message]]:
    """Name, API, version and message: of each array that a client may fill, at the newest
    version."""
    load_handlers()
    for served in sorted(SERVED.values(), key=lambda request: request.key):
        if served.key in NOT_FOR_CLIENTS:
            continue
        version = served.max_version
        for path in _arrays(served.request, version):
            name = f"{served.key.name} {'.'.join(path)}"
            yield name, served.key, version, _made(served.request, version, path, count)


def _arrays(owner: type[Struct], version: int) -> Iterator[list[str]]:
    for spec in owner.FIELDS:
        if version in spec.versions and spec.is_array:
            yield [spec.name]
            if spec.struct is not None:
                yield from ([spec.name, *rest] for rest in _arrays(spec.struct, version))


def _made(owner: type[S], version: int, path: list[str], count: int) -> S:
    values = {}
    for spec in owner.FIELDS:
        if version not in spec.versions:
            continue
        if path and spec.name == path[0]:
            number = count if len(path) == 1 else 1
            values[spec.name] = [
                _element(spec, version, path[1:], at, count) for at in range(number)
            ]
        elif spec.is_array:
            values[spec.name] = [_element(spec, version, [], 0, 1)]
        else:
            values[spec.name] = _value(spec, 0)
    return owner(**values)


def _element(spec: Field, version: int, path: list[str], at: int, count: int) -> object:
    if spec.struct is None:
        return _value(spec, at)
    made = _made(spec.struct, version, path, count)
    own = {field.name: getattr(made, field.name) for field in spec.struct.FIELDS}
    for field in spec.struct.FIELDS:
        if (
            not field.is_array
            and not field.is_struct
            and field.name not in ("timestamp", "leader_epoch")
        ):
            own[field.name] = _value(field, at)
    return spec.struct(**own)


def _value(spec: Field, at: int) -> object:
    """A value of the field's type, another one at each place where it can be."""
    if spec.element == "string":
        return f"n{at}"
    if spec.element == "bytes":
        return b"b%d" % at
    if spec.element == "uuid":
        return UUID(int=at + 1)
    if spec.element == "records":
        return memoryview(b"")
    if spec.element in ("int32", "int64", "uint16", "int16"):
        return at % 30_000
    return spec.make_default() if not spec.is_array else 0
