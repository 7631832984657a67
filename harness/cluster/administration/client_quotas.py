"""Quotas of client ids (KIP-546): AlterClientQuotas 0, packed byte by byte.

No client library of the lab has this request. Any broker answers it.
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
    """The request for one client id, None for the default. A quota of None is removed."""
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
    """The error code of the one client id."""
    answer = ResponseReader(data)
    answer.read(">i")
    answer.read(">i")
    return answer.read(">h")


def alter_quotas(
    addresses: Sequence[str], client: str | None, quotas: Mapping[str, float | None]
) -> None:
    """Send to the first broker that answers. Raises KafkaError for an error, and when
    none answers."""
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
