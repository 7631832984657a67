"""Requests of somebody who proves who it is, and of an administrator of rights, byte by byte.

SaslHandshake 1, SaslAuthenticate 0, Fetch 4, Produce 3, FindCoordinator 0, DescribeAcls 1,
CreateAcls 1, DeleteAcls 1, AlterUserScramCredentials 0: so it is known which broker answered what.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import secrets
import struct
from dataclasses import dataclass

from urteil.harness.protocol.connection import Wire
from urteil.harness.protocol.framing import Answer, frame, text
from urteil.harness.protocol.produce_requests import produce_request

HANDSHAKE, AUTHENTICATE, FETCH, FIND_COORDINATOR = (17, 1), (36, 0), (1, 4), (10, 0)
DESCRIBE_ACLS, CREATE_ACLS, DELETE_ACLS, ALTER_SCRAM = (29, 1), (30, 1), (31, 1), (51, 0)
MECHANISM = "SCRAM-SHA-256"
SCRAM_SHA_256 = 1
ITERATIONS = 4096
TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID = 2, 3, 4, 5
FIND_ANY_COORDINATOR = (10, 1)
ALL, READ, WRITE, DESCRIBE = 2, 3, 4, 8
DENY, ALLOW = 2, 3
ANY = 1
LITERAL, PREFIXED = 3, 4
AUTHENTICATION_FAILED = 58


class Refused(Exception):
    """The broker does not take the peer for whom it says it is."""


@dataclass(frozen=True, slots=True)
class Acl:
    """One entry for one principal, from any address unless it names one."""

    principal: str
    type: int
    name: str
    operation: int
    pattern: int = LITERAL
    host: str = "*"

    def encoded(self, permission: int) -> bytes:
        head = struct.pack(">b", self.type) + text(self.name) + struct.pack(">b", self.pattern)
        who = text(self.principal) + text(self.host)
        return head + who + struct.pack(">bb", self.operation, permission)


def log_in(address: str, user: str, password: str, timeout_s: float) -> Wire:
    """A connection of that user's. Raises Refused, OSError and struct.error."""
    wire = Wire(address, timeout_s)
    try:
        answer = Answer(wire.ask(frame(HANDSHAKE, 1, text(MECHANISM))))
        if error := answer.take(">h"):
            raise ConnectionError(f"the handshake: error {error}")
        _prove(wire, user, password)
    except BaseException:
        wire.close()
        raise
    return wire


def _prove(wire: Wire, user: str, password: str) -> None:
    """SCRAM (RFC 5802): who proves itself is not told before its own proof was taken."""
    bare = f"n={user},r={secrets.token_hex(12)}"
    first = _show(wire, f"n,,{bare}".encode()).decode()
    said = dict(part.partition("=")[::2] for part in first.split(","))
    salt, count = base64.b64decode(said["s"]), int(said["i"])
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, count)
    key = hmac.digest(salted, b"Client Key", "sha256")
    without_proof = f"c=biws,r={said['r']}"
    signed = f"{bare},{first},{without_proof}".encode()
    signature = hmac.digest(hashlib.sha256(key).digest(), signed, "sha256")
    proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
    _show(wire, f"{without_proof},p={base64.b64encode(proof).decode()}".encode())


def _show(wire: Wire, token: bytes) -> bytes:
    answer = Answer(wire.ask(frame(AUTHENTICATE, 1, struct.pack(">i", len(token)) + token)))
    error = answer.take(">h")
    if error == AUTHENTICATION_FAILED:
        raise Refused
    if error:
        raise ConnectionError(f"authentication: error {error}")
    answer.text()
    return answer.blob()


def fetch(wire: Wire, topic: str, partition: int) -> int:
    """Error of a fetch from the start of a partition that waits for nothing."""
    body = struct.pack(">iiiibi", -1, 0, 0, 4096, 0, 1) + text(topic)
    body += struct.pack(">iiqi", 1, partition, 0, 4096)
    answer = Answer(wire.ask(frame(FETCH, 1, body)))
    answer.take(">i")
    answer.take(">i")
    answer.text()
    answer.take(">i")
    answer.take(">i")
    return answer.take(">h")


def produce(wire: Wire, topic: str, partition: int, batch: bytes, timeout_ms: int) -> int:
    """Error of a batch with acks=all."""
    answer = Answer(wire.ask(produce_request(1, topic, partition, batch, timeout_ms)))
    answer.take(">i")
    answer.text()
    answer.take(">i")
    answer.take(">i")
    return answer.take(">h")


def find_group(wire: Wire, group: str) -> int:
    return Answer(wire.ask(frame(FIND_COORDINATOR, 1, text(group)))).take(">h")


def find_transactional_id(wire: Wire, transactional_id: str) -> int:
    body = text(transactional_id) + struct.pack(">b", 1)
    answer = Answer(wire.ask(frame(FIND_ANY_COORDINATOR, 1, body)))
    answer.take(">i")
    return answer.take(">h")


def describe_acls(wire: Wire) -> int:
    """Error of asking for the ACLs of a topic that is not there."""
    body = struct.pack(">b", TOPIC) + text("nothing") + struct.pack(">bhhbb", LITERAL, -1, -1, 1, 1)
    answer = Answer(wire.ask(frame(DESCRIBE_ACLS, 1, body)))
    answer.take(">i")
    return answer.take(">h")


def told_acls(wire: Wire, principal: str) -> list[tuple[Acl, int]]:
    """What a broker tells of a principal's entries, each with its permission. KeyError for an
    error."""
    body = struct.pack(">bhb", ANY, -1, ANY) + text(principal) + struct.pack(">hbb", -1, ANY, ANY)
    answer = Answer(wire.ask(frame(DESCRIBE_ACLS, 1, body)))
    answer.take(">i")
    if error := answer.take(">h"):
        raise KeyError(error)
    answer.text()
    found = []
    for _ in range(answer.take(">i")):
        type, name, pattern = answer.take(">b"), answer.text(), answer.take(">b")
        for _ in range(answer.take(">i")):
            who, host = answer.text(), answer.text()
            acl = Acl(who, type, name, answer.take(">b"), pattern, host)
            found.append((acl, answer.take(">b")))
    return found


def create_acl(wire: Wire, acl: Acl, permission: int) -> int:
    body = struct.pack(">i", 1) + acl.encoded(permission)
    return _first_error(wire.ask(frame(CREATE_ACLS, 1, body)))


def delete_acl(wire: Wire, acl: Acl, permission: int) -> int:
    """The error of the filter that picks this one alone."""
    body = struct.pack(">i", 1) + acl.encoded(permission)
    return _first_error(wire.ask(frame(DELETE_ACLS, 1, body)))


def _first_error(answer: bytes) -> int:
    read = Answer(answer)
    read.take(">i")
    read.take(">i")
    return read.take(">h")


def set_password(wire: Wire, user: str, password: str | None) -> int:
    """The error of a user's new password, or of its credential's removal (None)."""
    if password is None:
        body = b"\x02" + _compact(user.encode()) + struct.pack(">b", SCRAM_SHA_256) + b"\0\x01\0"
    else:
        salt = os.urandom(16)
        salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, ITERATIONS)
        body = b"\x01\x02" + _compact(user.encode())
        body += struct.pack(">bi", SCRAM_SHA_256, ITERATIONS)
        body += _compact(salt) + _compact(salted) + b"\0\0"
    content = struct.pack(">hhi", *ALTER_SCRAM, 1) + text("visitor") + b"\0" + body
    answer = Answer(wire.ask(struct.pack(">i", len(content)) + content))
    answer.take(">b")  # the header's tags
    answer.take(">i")
    answer.take(">b")  # one result
    answer.skip(answer.take(">b") - 1)
    return answer.take(">h")


def _compact(data: bytes) -> bytes:
    return bytes([len(data) + 1]) + data
