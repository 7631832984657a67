"""Requests of a client that authenticates, and of an administrator of ACLs.

SaslHandshake 1, SaslAuthenticate 0, Fetch 4, Produce 3, FindCoordinator 0, DescribeAcls 1,
CreateAcls 1, DeleteAcls 1, AlterUserScramCredentials 0. They are packed byte by byte, so that each
response comes from a known broker.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import secrets
import struct
from dataclasses import dataclass

from urteil.harness.protocol.connection import Connection
from urteil.harness.protocol.framing import ResponseReader, encode_request, encode_string
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
RESOURCE_NOT_FOUND = 91


class AuthenticationFailed(Exception):
    """The broker rejected the credentials."""


@dataclass(frozen=True, slots=True)
class Acl:
    """One ACL of one principal, for any host by default."""

    principal: str
    type: int
    name: str
    operation: int
    pattern: int = LITERAL
    host: str = "*"

    def encode(self, permission: int) -> bytes:
        head = struct.pack(">b", self.type) + encode_string(self.name)
        head += struct.pack(">b", self.pattern)
        principal = encode_string(self.principal) + encode_string(self.host)
        return head + principal + struct.pack(">bb", self.operation, permission)


def authenticate(address: str, user: str, password: str, timeout_s: float) -> Connection:
    """Connect and authenticate by SCRAM. Raises AuthenticationFailed, OSError, struct.error."""
    connection = Connection(address, timeout_s)
    try:
        answer = ResponseReader(
            connection.call(encode_request(HANDSHAKE, 1, encode_string(MECHANISM)))
        )
        if error := answer.read(">h"):
            raise ConnectionError(f"the handshake: error {error}")
        _authenticate_scram(connection, user, password)
    except BaseException:
        connection.close()
        raise
    return connection


def _authenticate_scram(connection: Connection, user: str, password: str) -> None:
    """The client's half of SCRAM (RFC 5802). The server's signature is not verified."""
    bare = f"n={user},r={secrets.token_hex(12)}"
    first = _send_token(connection, f"n,,{bare}".encode()).decode()
    fields = dict(part.partition("=")[::2] for part in first.split(","))
    salt, count = base64.b64decode(fields["s"]), int(fields["i"])
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, count)
    key = hmac.digest(salted, b"Client Key", "sha256")
    without_proof = f"c=biws,r={fields['r']}"
    signed = f"{bare},{first},{without_proof}".encode()
    signature = hmac.digest(hashlib.sha256(key).digest(), signed, "sha256")
    proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
    _send_token(connection, f"{without_proof},p={base64.b64encode(proof).decode()}".encode())


def _send_token(connection: Connection, token: bytes) -> bytes:
    answer = ResponseReader(
        connection.call(encode_request(AUTHENTICATE, 1, struct.pack(">i", len(token)) + token))
    )
    error = answer.read(">h")
    if error == AUTHENTICATION_FAILED:
        raise AuthenticationFailed
    if error:
        raise ConnectionError(f"authentication: error {error}")
    answer.read_string()
    return answer.read_bytes()


def fetch(connection: Connection, topic: str, partition: int) -> int:
    """The error of a fetch from the start of a partition, without waiting."""
    body = struct.pack(">iiiibi", -1, 0, 0, 4096, 0, 1) + encode_string(topic)
    body += struct.pack(">iiqi", 1, partition, 0, 4096)
    answer = ResponseReader(connection.call(encode_request(FETCH, 1, body)))
    answer.read(">i")
    answer.read(">i")
    answer.read_string()
    answer.read(">i")
    answer.read(">i")
    return answer.read(">h")


def produce(
    connection: Connection, topic: str, partition: int, batch: bytes, timeout_ms: int
) -> int:
    """The error of a Produce request with acks=all."""
    answer = ResponseReader(
        connection.call(produce_request(1, topic, partition, batch, timeout_ms))
    )
    answer.read(">i")
    answer.read_string()
    answer.read(">i")
    answer.read(">i")
    return answer.read(">h")


def find_group(connection: Connection, group: str) -> int:
    return ResponseReader(
        connection.call(encode_request(FIND_COORDINATOR, 1, encode_string(group)))
    ).read(">h")


def find_transactional_id(connection: Connection, transactional_id: str) -> int:
    body = encode_string(transactional_id) + struct.pack(">b", 1)
    answer = ResponseReader(connection.call(encode_request(FIND_ANY_COORDINATOR, 1, body)))
    answer.read(">i")
    return answer.read(">h")


def describe_acls(connection: Connection) -> int:
    """The error of a DescribeAcls request for a topic that does not exist."""
    body = (
        struct.pack(">b", TOPIC)
        + encode_string("nothing")
        + struct.pack(">bhhbb", LITERAL, -1, -1, 1, 1)
    )
    answer = ResponseReader(connection.call(encode_request(DESCRIBE_ACLS, 1, body)))
    answer.read(">i")
    return answer.read(">h")


def list_acls(connection: Connection, principal: str) -> list[tuple[Acl, int]]:
    """The ACLs of a principal at one broker, with their permission types. KeyError for an
    error."""
    body = (
        struct.pack(">bhb", ANY, -1, ANY)
        + encode_string(principal)
        + struct.pack(">hbb", -1, ANY, ANY)
    )
    answer = ResponseReader(connection.call(encode_request(DESCRIBE_ACLS, 1, body)))
    answer.read(">i")
    if error := answer.read(">h"):
        raise KeyError(error)
    answer.read_string()
    acls = []
    for _ in range(answer.read(">i")):
        type, name, pattern = answer.read(">b"), answer.read_string(), answer.read(">b")
        for _ in range(answer.read(">i")):
            principal, host = answer.read_string(), answer.read_string()
            acl = Acl(principal, type, name, answer.read(">b"), pattern, host)
            acls.append((acl, answer.read(">b")))
    return acls


def create_acl(connection: Connection, acl: Acl, permission: int) -> int:
    body = struct.pack(">i", 1) + acl.encode(permission)
    return _first_error(connection.call(encode_request(CREATE_ACLS, 1, body)))


def delete_acl(connection: Connection, acl: Acl, permission: int) -> int:
    """The error of a filter that matches only this ACL."""
    body = struct.pack(">i", 1) + acl.encode(permission)
    return _first_error(connection.call(encode_request(DELETE_ACLS, 1, body)))


def _first_error(answer: bytes) -> int:
    read = ResponseReader(answer)
    read.read(">i")
    read.read(">i")
    return read.read(">h")


def set_password(connection: Connection, user: str, password: str | None) -> int:
    """The error of a new password, or with None of the removal of the credential.

    A credential that does not exist counts as removed: the response of an earlier removal may have
    been lost."""
    if password is None:
        body = b"\x02" + _compact(user.encode()) + struct.pack(">b", SCRAM_SHA_256) + b"\0\x01\0"
    else:
        salt = os.urandom(16)
        salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, ITERATIONS)
        body = b"\x01\x02" + _compact(user.encode())
        body += struct.pack(">bi", SCRAM_SHA_256, ITERATIONS)
        body += _compact(salt) + _compact(salted) + b"\0\0"
    content = struct.pack(">hhi", *ALTER_SCRAM, 1) + encode_string("visitor") + b"\0" + body
    answer = ResponseReader(connection.call(struct.pack(">i", len(content)) + content))
    answer.read(">b")  # the tagged fields of the header
    answer.read(">i")
    answer.read(">b")  # one result
    answer.skip(answer.read(">b") - 1)
    error: int = answer.read(">h")
    return 0 if password is None and error == RESOURCE_NOT_FOUND else error


def _compact(data: bytes) -> bytes:
    return bytes([len(data) + 1]) + data
