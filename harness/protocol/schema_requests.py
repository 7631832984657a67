"""Requests by the definitions of a release, for those that no client library of the lab has.

Their versions must be flexible: request headers are of version 2, response headers of version 1.
"""

from __future__ import annotations

import struct
from contextlib import closing
from pathlib import Path
from typing import Any

from urteil.harness.protocol.connection import Connection
from urteil.harness.protocol.framing import encode_string
from urteil.harness.protocol.message_encoder import encode_message
from urteil.harness.protocol.message_schema import read_schemas

_CORRELATION = 1
_RESPONSE_HEADER = 5
"""The size of a correlation id and no tagged fields."""


def send_request(
    clients_jar: Path, name: str, address: str, *, timeout_s: float, **fields: Any
) -> dict[str, Any]:
    """The response to version 0 of a request, such as `AddRaftVoter`, by Kafka's field names.

    Raises OSError without a response, and UnreadableMessage for one of another form.
    """
    request, response = f"{name}Request", f"{name}Response"
    schemas = read_schemas(clients_jar, "common/message", [request, response])
    header = struct.pack(">hhi", schemas[request].api_key, 0, _CORRELATION)
    content = header + encode_string("urteil") + b"\0"
    content += encode_message(schemas[request], 0, **fields)
    with closing(Connection(address, timeout_s)) as connection:
        frame = connection.call(struct.pack(">i", len(content)) + content)
    return schemas[response].decode(frame[_RESPONSE_HEADER:], 0)
