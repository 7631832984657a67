"""SCRAM (RFC 5802, RFC 7677) without channel binding, and Kafka's format of its credentials."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from urteil.broker.security.principals import ANONYMOUS, USER, Principal
from urteil.broker.security.sasl.sasl_exchange import BrokenExchange, Denied, MalformedMessage

HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
MIN_ITERATIONS = 4096
MAX_ITERATIONS = 16384  # iterations that a client may set

_NAME = r"(?:[^,=\0]|=2C|=3D)+"
_FIRST = re.compile(
    rf"n,(?:a=(?P<wanted>{_NAME}))?,(?:m=[^,\0]+,)?n=(?P<user>{_NAME}),"
    r"r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+)(?P<extensions>(?:,[A-Za-z]+=[^,\0]+)*)"
)
_FINAL = re.compile(
    r"(?P<without_proof>c=(?P<binding>[A-Za-z0-9+/=]+),r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+)"
    r"(?:,[A-Za-z]+=[^,\0]+)*),p=(?P<proof>[A-Za-z0-9+/=]+)"
)
_SERVER_FIRST = re.compile(
    r"r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+),s=(?P<salt>[A-Za-z0-9+/=]+),i=(?P<count>\d{1,6})(?:,.*)?"
)
"""At most a million iterations: a peer must not occupy the broker for minutes."""


@dataclass(frozen=True, slots=True)
class Credential:
    """A server's credential of a user: it verifies a password, but does not authenticate
    elsewhere."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return f"Credential(iterations={self.iterations})"

    def text(self) -> str:
        """The text in ZooKeeper (`ScramCredentialUtils`)."""
        return (
            f"salt={_encode_base64(self.salt)},stored_key={_encode_base64(self.stored_key)},"
            f"server_key={_encode_base64(self.server_key)},iterations={self.iterations}"
        )


def parse_credential(text: str) -> Credential:
    """Parse a `text`. Raises ValueError without its content."""
    attributes = dict(part.partition("=")[::2] for part in text.split(","))
    try:
        return Credential(
            base64.b64decode(attributes["salt"]),
            base64.b64decode(attributes["stored_key"]),
            base64.b64decode(attributes["server_key"]),
            int(attributes["iterations"]),
        )
    except (KeyError, ValueError):
        raise ValueError("no SCRAM credential: salt, stored_key, server_key, iterations") from None


def credential(
    mechanism: str, password: str, *, iterations: int = MIN_ITERATIONS, salt: bytes | None = None
) -> Credential:
    """Derive a credential from a password."""
    salt = os.urandom(32) if salt is None else salt
    salted = hashlib.pbkdf2_hmac(HASHES[mechanism], password.encode(), salt, iterations)
    return credential_of_salted(mechanism, salted, salt, iterations)


def credential_of_salted(mechanism: str, salted: bytes, salt: bytes, iterations: int) -> Credential:
    """Derive a credential from a password that a client has salted."""
    name = HASHES[mechanism]
    client_key = hmac.digest(salted, b"Client Key", name)
    stored_key = hashlib.new(name, client_key).digest()
    return Credential(salt, stored_key, hmac.digest(salted, b"Server Key", name), iterations)


@dataclass(frozen=True, slots=True)
class UserCredential:
    """A credential with its user; for a delegation token, with its owner and expiry."""

    credential: Credential
    principal: Principal
    expires_at_ms: float | None = None


Find = Callable[[str, bool], UserCredential | None]
"""Finds a credential by a user's name, or by a delegation token's id if the second argument is
true."""


def nonce() -> str:
    return secrets.token_hex(16)


class ScramExchange:
    """The server side. `find` looks up credentials."""

    def __init__(self, mechanism: str, find: Find, nonce: Callable[[], str] = nonce) -> None:
        self._hash = HASHES[mechanism]
        self._mechanism = mechanism
        self._find = find
        self._nonce = nonce
        self._known: UserCredential | None = None
        self._said = ""  # client-first-message-bare and server-first-message
        self._expected = ""
        self.is_complete = False
        self.principal = ANONYMOUS
        self.expires_at_ms: float | None = None

    def step(self, message: bytes) -> bytes:
        try:
            text = message.decode()
        except UnicodeDecodeError:
            raise BrokenExchange("Invalid SCRAM message: not UTF-8") from None
        return self._first(text) if self._known is None else self._final(text, self._known)

    def _first(self, text: str) -> bytes:
        match = _FIRST.fullmatch(text)
        if match is None:
            raise BrokenExchange("Invalid SCRAM client first message format")
        user = _name(match["user"])
        extensions = dict(
            part.partition("=")[::2] for part in match["extensions"].split(",") if part
        )
        by_token = extensions.get("tokenauth", "").lower() == "true"
        known = self._find(user, by_token)
        if known is None:
            raise BrokenExchange("Authentication failed: Invalid user credentials")
        if match["wanted"] and _name(match["wanted"]) != user:
            raise Denied(
                "Authentication failed: Client requested an authorization id that is different "
                "from username"
            )
        own = known.credential
        if own.iterations < MIN_ITERATIONS:
            raise BrokenExchange(
                f"Iterations {own.iterations} is less than the minimum {MIN_ITERATIONS} for "
                f"{self._mechanism}"
            )
        self._known = known
        self._expected = match["nonce"] + self._nonce()
        answer = f"r={self._expected},s={_encode_base64(own.salt)},i={own.iterations}"
        bare = text.split(",", 2)[2]
        self._said = f"{bare},{answer}"
        return answer.encode()

    def _final(self, text: str, known: UserCredential) -> bytes:
        match = _FINAL.fullmatch(text)
        if match is None:
            raise BrokenExchange("Invalid SCRAM client final message format")
        # Like Apache Kafka, compare the end only: librdkafka before 2.6 repeats its own part.
        if not match["nonce"].endswith(self._expected):
            raise BrokenExchange("Invalid client nonce in the final client message.")
        auth_message = f"{self._said},{match['without_proof']}".encode()
        own = known.credential
        signature = hmac.digest(own.stored_key, auth_message, self._hash)
        proof = _decode_base64(match["proof"])
        if len(proof) != len(signature):
            raise MalformedMessage("Invalid SCRAM message: a proof of another length")
        client_key = _xor(signature, proof)
        stored_key = hashlib.new(self._hash, client_key).digest()
        if not hmac.compare_digest(stored_key, own.stored_key):
            raise BrokenExchange("Invalid client credentials")
        self.is_complete = True
        self.principal = known.principal
        self.expires_at_ms = known.expires_at_ms
        return (
            b"v=" + _encode_base64(hmac.digest(own.server_key, auth_message, self._hash)).encode()
        )


class ScramLogin:
    """The client side, with `username` and `password` of the login module."""

    def __init__(
        self, mechanism: str, options: Mapping[str, str], nonce: Callable[[], str] = nonce
    ) -> None:
        self._hash = HASHES[mechanism]
        self._password = options.get("password", "").encode()
        user = options.get("username", "").replace("=", "=3D").replace(",", "=2C")
        by_token = options.get("tokenauth", "").lower() == "true"
        self._nonce = nonce()
        self._bare = f"n={user},r={self._nonce}{',tokenauth=true' if by_token else ''}"
        self._expected: bytes | None = None

    def step(self, challenge: bytes | None) -> bytes | None:
        if challenge is None:
            return f"n,,{self._bare}".encode()
        if self._expected is None:
            return self._final(challenge.decode("utf-8", "replace"))
        if not hmac.compare_digest(challenge, self._expected):
            raise BrokenExchange("the server does not know the password either")
        return None

    def _final(self, text: str) -> bytes:
        match = _SERVER_FIRST.fullmatch(text)
        if match is None or not match["nonce"].startswith(self._nonce):
            raise BrokenExchange("Invalid SCRAM server first message")
        count = int(match["count"])
        if count < MIN_ITERATIONS:
            raise BrokenExchange(f"{count} iterations are fewer than {MIN_ITERATIONS}")
        name = self._hash
        salted = hashlib.pbkdf2_hmac(name, self._password, _decode_base64(match["salt"]), count)
        client_key = hmac.digest(salted, b"Client Key", name)
        without_proof = f"c=biws,r={match['nonce']}"
        auth_message = f"{self._bare},{text},{without_proof}".encode()
        signature = hmac.digest(hashlib.new(name, client_key).digest(), auth_message, name)
        server_key = hmac.digest(salted, b"Server Key", name)
        self._expected = (
            b"v=" + _encode_base64(hmac.digest(server_key, auth_message, name)).encode()
        )
        return f"{without_proof},p={_encode_base64(_xor(client_key, signature))}".encode()


def user_of(name: str) -> Principal:
    return Principal(USER, name)


def _name(text: str) -> str:
    return text.replace("=2C", ",").replace("=3D", "=")


def _encode_base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _decode_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text)
    except binascii.Error:
        raise BrokenExchange("Invalid SCRAM message: no base64") from None


def _xor(left: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(left, other, strict=False))
