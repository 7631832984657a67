"""Quotas of client ids (KIP-546), which no client library of the lab can set: packed byte by byte.

AlterClientQuotas 0, at any broker.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

from kafka.errors import KafkaConnectionError, KafkaError, UnknownError

from urteil.harness.protocol.connection import Connection
from urteil.harness.protocol.framing import ResponseReader, encode_request, encode_string

ALTER_CLIENT_QUOTAS = (49, 0)
TIMEOUT_S = 5.0
_ONE, _NULL = struct.pack(">i", 1), struct.pack(">h", -1)


def alter_request(client: str | None, quotas: Mapping[str, float | None]) -> bytes:
    """Of one client id, None being the default; a quota of None is removed."""
    body = (
        _ONE
        + _ONE
        + encode_string("client-id")
        + (_NULL if client is None else encode_string(client))
    )
    body += struct.pack(">i", len(quotas))
    for name, value in quotas.items():
        body += encode_string(name) + struct.pack(">d?", value or 0.0, value is None)
    return encode_request(ALTER_CLIENT_QUOTAS, 1, body + b"\0")


def read_error(data: bytes) -> int:
    """Of the one client id."""
    answer = ResponseReader(data)
    answer.read(">i")
    answer.read(">i")
    return answer.read(">h")


def alter_quotas(
    addresses: Sequence[str], client: str | None, quotas: Mapping[str, float | None]
) -> None:
    """At the first broker that answers. Raises KafkaError for a refusal, and where none does."""
    refused: KafkaError = KafkaConnectionError("no broker answers")
    for address in addresses:
        try:
            wire = Connection(address, TIMEOUT_S)
            try:
                error = read_error(wire.call(alter_request(client, quotas)))
            finally:
                wire.close()
        except (OSError, struct.error):
            continue
        if not error:
            return
        refused = UnknownError(f"error {error}")
    raise refused
