"""Messages between the lab and the agent of a host: a length of four bytes, then MessagePack."""

from __future__ import annotations

from typing import Any

import msgspec

LENGTH_BYTES = 4
CHUNK_BYTES = 1 << 20
"""The content of a file in one message."""


class Request(msgspec.Struct, frozen=True, array_like=True):
    """A call of an operation of the agent."""

    number: int
    operation: str
    arguments: list[Any]


class Response(msgspec.Struct, frozen=True, array_like=True):
    """The value of the call with that number, or its error."""

    number: int
    value: Any = None
    failure: str = ""


def encode(message: Request | Response) -> bytes:
    content = msgspec.msgpack.encode(message)
    return len(content).to_bytes(LENGTH_BYTES, "big") + content
