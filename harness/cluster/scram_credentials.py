"""SCRAM credentials as Apache Kafka keeps them in ZooKeeper (RFC 5802, KIP-84)."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from base64 import b64encode

ITERATIONS = 4096
_HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
MECHANISMS = tuple(_HASHES)


def scram_credential(mechanism: str, password: str) -> str:
    """`salt=...,stored_key=...,server_key=...,iterations=...`, of a new salt."""
    digest, salt = _HASHES[mechanism], secrets.token_bytes(16)
    salted = hashlib.pbkdf2_hmac(digest, password.encode(), salt, ITERATIONS)
    client_key = hmac.digest(salted, b"Client Key", digest)
    stored_key = hashlib.new(digest, client_key).digest()
    server_key = hmac.digest(salted, b"Server Key", digest)
    keys = {"salt": salt, "stored_key": stored_key, "server_key": server_key}
    encoded = [f"{name}={b64encode(value).decode()}" for name, value in keys.items()]
    return ",".join([*encoded, f"iterations={ITERATIONS}"])
