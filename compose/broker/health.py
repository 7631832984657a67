"""The HEALTHCHECK: asks the broker's first listener for its API versions; exit 0 if it answers."""

from __future__ import annotations

import re
import socket
import struct
import sys
from collections.abc import Mapping

from urteil.compose.broker.settings import settings

CORRELATION_ID = 7
CLIENT = b"health"
TIMEOUT_S = 3.0


def first_listener(properties: Mapping[str, str]) -> tuple[str, int]:
    """Host and port to dial. A listener on every interface is asked on loopback."""
    first = properties.get("listeners", "PLAINTEXT://:9092").split(",")[0]
    match = re.fullmatch(r"\s*[^:]+://\[?(.*?)\]?:(\d+)\s*", first)
    if match is None:
        raise ValueError(f"no listener in {first!r}")
    host = match.group(1)
    return ("127.0.0.1" if host in ("", "0.0.0.0", "::") else host), int(match.group(2))


def health_error(host: str, port: int) -> int:
    """The error code of an ApiVersions answer, version 0; OSError when none comes."""
    header = struct.pack(">hhih", 18, 0, CORRELATION_ID, len(CLIENT)) + CLIENT
    with socket.create_connection((host, port), TIMEOUT_S) as connection:
        connection.settimeout(TIMEOUT_S)
        connection.sendall(struct.pack(">i", len(header)) + header)
        answer = connection.makefile("rb").read(10)
    if len(answer) < 10:
        raise OSError("the broker closed the connection")
    _, correlation, error = struct.unpack(">iih", answer)
    if correlation != CORRELATION_ID:
        raise OSError(f"an answer to request {correlation}, not to {CORRELATION_ID}")
    return int(error)


def main() -> int:
    try:
        host, port = first_listener(settings())
        error = health_error(host, port)
    except (OSError, ValueError) as problem:
        print(problem)
        return 1
    print(f"{host}:{port} answers with error code {error}")
    return 1 if error else 0


if __name__ == "__main__":
    sys.exit(main())
