"""Quotas of client ids (KIP-546), which no client library of the lab can set: packed byte by byte.

AlterClientQuotas 0, at any broker.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

from kafka.errors import KafkaConnectionError, KafkaError, UnknownError

from urteil.harness.protocol.connection import Wire
from urteil.harness.protocol.framing import Answer, frame, text

ALTER_CLIENT_QUOTAS = (49, 0)
TIMEOUT_S = 5.0
_ONE, _NULL = struct.pack(">i", 1), struct.pack(">h", -1)


def alter_request(client: str | None, quotas: Mapping[str, float | None]) -> bytes:
    """Of one client id, None being the default; a quota of None is removed."""
    body = _ONE + _ONE + text("client-id") + (_NULL if client is None else text(client))
    body += struct.pack(">i", len(quotas))
    for name, value in quotas.items():
        body += text(name) + struct.pack(">d?", value or 0.0, value is None)
    return frame(ALTER_CLIENT_QUOTAS, 1, body + b"\0")


def read_error(data: bytes) -> int:
    """Of the one client id."""
    answer = Answer(data)
    answer.take(">i")
    answer.take(">i")
    return answer.take(">h")


def alter_quotas(
    addresses: Sequence[str], client: str | None, quotas: Mapping[str, float | None]
) -> None:
    """At the first broker that answers. Raises KafkaError for a refusal, and where none does."""
    refused: KafkaError = KafkaConnectionError("no broker answers")
    for address in addresses:
        try:
            wire = Wire(address, TIMEOUT_S)
            try:
                error = read_error(wire.ask(alter_request(client, quotas)))
            finally:
                wire.close()
        except (OSError, struct.error):
            continue
        if not error:
            return
        refused = UnknownError(f"error {error}")
    raise refused
