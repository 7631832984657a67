"""A client that asks to join a group, is given an id to join with, and is never seen again.

    python -m urteil.harness.clients.special.abandoned_join SPEC.json

So ends a member that dies between its first two requests (KIP-394). A group that begins another
generation waits for it no longer than for a member that is silent. `options`: `passers_by`, how
many there are, one a second from the begin on.
"""

from __future__ import annotations

import struct

from urteil.harness.clients.client_main import Stop, run_client
from urteil.harness.clients.spec import ClientSpec, group_times
from urteil.harness.evidence.journal import JournalWriter
from urteil.harness.protocol.connection import Connection
from urteil.harness.protocol.framing import ResponseReader, encode_request, encode_string
from urteil.harness.protocol.group_requests import PROTOCOL, PROTOCOL_TYPE

JOIN = (11, 4)
MEMBER_ID_REQUIRED = 79
EVERY_S = 1.0
RETRY_S = 0.1


def join_request(group: str, session_ms: int) -> bytes:
    """JoinGroup 4, the first that is told an id before it is a member, by who has none."""
    times = struct.pack(">ii", session_ms, session_ms)
    protocols = struct.pack(">i", 1) + encode_string(PROTOCOL) + struct.pack(">i", 0)
    return encode_request(
        JOIN,
        1,
        encode_string(group) + times + encode_string("") + encode_string(PROTOCOL_TYPE) + protocols,
    )


def read_join(data: bytes) -> int:
    """The error."""
    answer = ResponseReader(data)
    answer.read(">i")
    return answer.read(">h")


def pass_by(spec: ClientSpec, journal: JournalWriter, stop: Stop) -> None:
    """Ask so many times, each time until some broker gives an id; then wait for the end."""
    request = join_request(spec.group, group_times(spec)["session_timeout_ms"])
    for _ in range(int(spec.workload.options["passers_by"])):
        while not stop.asked() and not any(_asks(spec, one, request) for one in spec.bootstrap):
            stop.wait(RETRY_S)
        stop.wait(EVERY_S)
    while not stop.asked():
        stop.wait(0.2)


def _asks(spec: ClientSpec, address: str, request: bytes) -> bool:
    """Whether this broker gave it an id."""
    try:
        wire = Connection(address, spec.workload.request_timeout_ms / 1000)
    except OSError:
        return False
    try:
        return read_join(wire.call(request)) == MEMBER_ID_REQUIRED
    except (OSError, struct.error):
        return False
    finally:
        wire.close()


if __name__ == "__main__":
    run_client(pass_by)
