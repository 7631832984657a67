"""Values of Kafka's VerifiableProducer: `PREFIX.SEQUENCE`.

The tool takes a number for its prefix. Here it is a checksum of run and client, so that such a
value names its send as a payload of the lab's own does; it has no checksum of its content.
"""

from __future__ import annotations

import re
import zlib
from functools import cache

PRODUCERS, SESSIONS = 64, 20
_VALUE = re.compile(rb"(\d{1,10})\.(\d{1,18})")


def prefix_of(run: str, client: str) -> int:
    """The prefix of a client's values, a positive int of Java's."""
    return zlib.crc32(f"{run}/{client}".encode()) & 0x7FFFFFFF


def sender_of(run: str, value: bytes) -> tuple[str, int] | None:
    """Client and sequence of a value; None when no client of this run could have sent it."""
    found = _VALUE.fullmatch(value)
    client = _clients(run).get(int(found[1])) if found else None
    return (client, int(found[2])) if found and client else None


@cache
def _clients(run: str) -> dict[int, str]:
    names = [f"p{number}" for number in range(1, PRODUCERS + 1)]
    names += [f"{name}.{session}" for name in names for session in range(2, SESSIONS + 1)]
    return {prefix_of(run, name): name for name in names}
