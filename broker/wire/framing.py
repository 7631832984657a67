"""Requests and responses on the wire: size, header, body.

Header versions (source: KIP-482 and `ApiKeys`): a request has header 1, from the API's flexible
version on header 2, and ControlledShutdown 0 has header 0, which lacks the client id. A response
has header 0, from the flexible version on header 1. ApiVersions always has response header 0, since
its reader does not know the broker's versions yet.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.messages import REQUESTS, RESPONSES
from urteil.broker.wire.primitives import AS_JAVA, Buffer, WireError, read_uvarint, skip_tags
from urteil.broker.wire.schema import NEVER, Message

_FIXED = struct.Struct(">hhi")
_SIZE = struct.Struct(">i")
_LENGTH = struct.Struct(">h")


@dataclass(frozen=True, slots=True)
class RequestHeader:
    """The header of a request; `client_id` is None if the client sent none."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


def request_header_version(api_key: int, api_version: int) -> int:
    """The version of the header before a request body."""
    if api_key == ApiKey.CONTROLLED_SHUTDOWN and api_version == 0:
        return 0
    return 2 if api_version >= _flexible_from(api_key) else 1


def response_header_version(api_key: int, api_version: int) -> int:
    """The version of the header before a response body."""
    if api_key == ApiKey.API_VERSIONS:
        return 0
    return 1 if api_version >= _flexible_from(api_key) else 0


def _flexible_from(api_key: int) -> int:
    message = REQUESTS.get(api_key)
    return message.FLEXIBLE_FROM if message else NEVER


def decode_request_header(frame: Buffer) -> tuple[RequestHeader, int]:
    """Read the header of a frame (without its size); return it and the position of the body.

    For an unknown API or version only key, version and correlation id are valid; the body must not
    be decoded. Raises WireError for a truncated frame or a wrong client id length.
    """
    try:
        api_key, api_version, correlation_id = _FIXED.unpack_from(frame)
        version = request_header_version(api_key, api_version)
        if version == 0:
            return RequestHeader(api_key, api_version, correlation_id, None), _FIXED.size
        client_id, pos = _client_id(frame, _FIXED.size)
        if version == 2:
            pos = _skip_tag_section(frame, pos)
    except (struct.error, IndexError) as error:
        raise WireError("truncated request header") from error
    return RequestHeader(api_key, api_version, correlation_id, client_id), pos


def _client_id(frame: Buffer, pos: int) -> tuple[str | None, int]:
    (length,) = _LENGTH.unpack_from(frame, pos)
    pos += _LENGTH.size
    if length < 0:
        return None, pos
    if length > len(frame) - pos:
        raise WireError(f"client id of {length} bytes in a frame of {len(frame)}")
    return str(frame[pos : pos + length], "utf-8", AS_JAVA), pos + length


def _skip_tag_section(frame: Buffer, pos: int) -> int:
    count, pos = read_uvarint(frame, pos)
    return skip_tags(frame, pos, count) if count else pos


def decode_request(frame: Buffer) -> tuple[RequestHeader, Message]:
    """Read a complete request. Raises WireError, also for an unknown API or version."""
    header, pos = decode_request_header(frame)
    message = _message_class(REQUESTS, header.api_key)
    return header, message.decode(header.api_version, frame, pos)[0]


def decode_response(api_key: int, api_version: int, frame: Buffer) -> tuple[int, Message]:
    """Read a response (without its size) to a request of that key and version.

    Returns the correlation id and the body. Raises WireError.
    """
    message = _message_class(RESPONSES, api_key)
    try:
        (correlation_id,) = _SIZE.unpack_from(frame)
        pos = _SIZE.size
        if response_header_version(api_key, api_version) == 1:
            pos = _skip_tag_section(frame, pos)
    except (struct.error, IndexError) as error:
        raise WireError("truncated response header") from error
    return correlation_id, message.decode(api_version, frame, pos)[0]


def _message_class(registry: dict[int, type[Message]], api_key: int) -> type[Message]:
    message = registry.get(api_key)
    if message is None:
        raise WireError(f"no messages for API key {api_key}")
    return message


def encode_request(header: RequestHeader, message: Message) -> list[bytes | memoryview]:
    """A request as buffers for one writev, its size of 4 bytes first."""
    version = request_header_version(header.api_key, header.api_version)
    head = _FIXED.pack(header.api_key, header.api_version, header.correlation_id)
    if version >= 1:
        client_id = None if header.client_id is None else header.client_id.encode()
        head += _LENGTH.pack(-1 if client_id is None else len(client_id)) + (client_id or b"")
    if version == 2:
        head += b"\0"
    return _frame_parts(head, message.encode(header.api_version))


def encode_response(
    api_key: int, api_version: int, correlation_id: int, message: Message
) -> list[bytes | memoryview]:
    """A response as buffers for one writev, its size of 4 bytes first."""
    head = _SIZE.pack(correlation_id)
    if response_header_version(api_key, api_version) == 1:
        head += b"\0"
    return _frame_parts(head, message.encode(api_version))


def _frame_parts(head: bytes, body: list[bytes | memoryview]) -> list[bytes | memoryview]:
    size = len(head) + sum(map(len, body))
    first = _SIZE.pack(size) + head
    if body and isinstance(body[0], bytes) and len(body[0]) < 1 << 12:
        return [first + body[0], *body[1:]]
    return [first, *body]
