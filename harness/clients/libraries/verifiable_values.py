"""Values of Kafka's VerifiableProducer: `PREFIX.SEQUENCE`.

The tool requires a number as prefix. The lab uses a checksum of run and client, so that such a
value identifies its send like a payload. It has no checksum of its content.
"""

from __future__ import annotations

import re
import zlib
from functools import cache

PRODUCERS, SESSIONS = 64, 20
_VALUE = re.compile(rb"(\d{1,10})\.(\d{1,18})")


def prefix_of(run: str, client: str) -> int:
    """The prefix of a client's values, a positive int of Java."""
    return zlib.crc32(f"{run}/{client}".encode()) & 0x7FFFFFFF


def sender_of(run: str, value: bytes) -> tuple[str, int] | None:
    """Client and sequence of a value; None if no client of this run could have sent it."""
    match = _VALUE.fullmatch(value)
    client = _clients(run).get(int(match[1])) if match else None
    return (client, int(match[2])) if match and client else None


@cache
def _clients(run: str) -> dict[int, str]:
    names = [f"p{number}" for number in range(1, PRODUCERS + 1)]
    names += [f"{name}.{session}" for name in names for session in range(2, SESSIONS + 1)]
    return {prefix_of(run, name): name for name in names}
