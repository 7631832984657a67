"""A client that requests to join a group, gets a member id, and never returns.

    python -m urteil.harness.clients.special.abandoned_join SPEC.json

This is the end of a member that dies between its first two requests (KIP-394). A group that begins
another generation waits for it no longer than for a silent member.
"""

from __future__ import annotations

import struct
from typing import Annotated

from msgspec import Meta

from urteil.harness.clients.client_main import run_client
from urteil.harness.clients.kind import ClientKind, Stage
from urteil.harness.clients.options import MembershipOptions, WorkloadOptions
from urteil.harness.clients.spec import ClientSpec
from urteil.harness.clients.stop import Stop
from urteil.harness.evidence.journal import JournalWriter
from urteil.harness.protocol.connection import Connection
from urteil.harness.protocol.framing import ResponseReader, encode_request, encode_string
from urteil.harness.protocol.group_requests import PROTOCOL, PROTOCOL_TYPE

JOIN = (11, 4)
MEMBER_ID_REQUIRED = 79
EVERY_S = 1.0
RETRY_S = 0.1


class AbandonedJoinOptions(WorkloadOptions, frozen=True):
    """Options of this client."""

    passers_by: Annotated[
        int,
        Meta(
            ge=0,
            le=100_000,
            description="The number of abandoned joins, one each second (KIP-394).",
        ),
    ] = 0


def join_request(group: str, session_ms: int) -> bytes:
    """JoinGroup 4, the first version that returns a member id before the client is a member."""
    timeouts = struct.pack(">ii", session_ms, session_ms)
    protocols = struct.pack(">i", 1) + encode_string(PROTOCOL) + struct.pack(">i", 0)
    return encode_request(
        JOIN,
        1,
        encode_string(group)
        + timeouts
        + encode_string("")
        + encode_string(PROTOCOL_TYPE)
        + protocols,
    )


def read_join(data: bytes) -> int:
    """The error code."""
    answer = ResponseReader(data)
    answer.read(">i")
    return answer.read(">h")


def abandon_joins(spec: ClientSpec, journal: JournalWriter, stop: Stop) -> None:
    """Send each request until a broker returns a member id; then wait for the stop."""
    request = join_request(
        spec.workload.group, MembershipOptions.of(spec.workload).session_timeout_ms
    )
    for _ in range(AbandonedJoinOptions.of(spec.workload).passers_by):
        while not stop.is_set() and not any(
            _got_member_id(spec, address, request) for address in spec.bootstrap
        ):
            stop.wait(RETRY_S)
        stop.wait(EVERY_S)
    stop.wait_until_set()


def _got_member_id(spec: ClientSpec, address: str, request: bytes) -> bool:
    """Whether this broker returned a member id."""
    try:
        connection = Connection(address, spec.workload.request_timeout_ms / 1000)
    except OSError:
        return False
    try:
        return read_join(connection.call(request)) == MEMBER_ID_REQUIRED
    except (OSError, struct.error):
        return False
    finally:
        connection.close()


KIND = ClientKind(
    name="passer",
    about="Requests to join a group, gets a member id, and never uses it.",
    stage=Stage.LOAD,
    prefix="passer",
    count=lambda scenario: int(AbandonedJoinOptions.of(scenario.workload).passers_by > 0),
    work=abandon_joins,
    options=(AbandonedJoinOptions,),
)

if __name__ == "__main__":
    run_client(KIND)
