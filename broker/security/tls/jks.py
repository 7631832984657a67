"""Java key stores of type JKS, which no other library reads; format and encryption are Sun's.

Big-endian: magic, version, count; an entry is a tag (1 key, 2 certificate), an alias and a time;
then a SHA-1 over the password and all of it. A key is XORed with a chain of SHA-1 (OID
1.3.6.1.4.1.42.2.17.1.1). Source: `sun.security.provider.JavaKeyStore` and `KeyProtector`.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from dataclasses import dataclass

from urteil.broker.security.tls import der

MAGIC = b"\xfe\xed\xfe\xed"
_KEY, _CERTIFICATE = 1, 2
_WHITENER = b"Mighty Aphrodite"
_PROTECTOR = "1.3.6.1.4.1.42.2.17.1.1"
_SHA1_BYTES = 20


@dataclass(frozen=True, slots=True)
class JksKey:
    """An encrypted private key, and its certificates in DER, its own first."""

    protected: bytes
    chain: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class JksStore:
    """All entries in the order of the file."""

    keys: tuple[JksKey, ...]
    trusted: tuple[bytes, ...]


def parse_jks(data: bytes, password: str | None) -> JksStore:
    """Parse a store. Raises ValueError for another format or a wrong password; without a password,
    integrity is not checked."""
    if password is not None:
        digest = hashlib.sha1(_utf16(password) + _WHITENER + data[:-_SHA1_BYTES]).digest()
        if not hmac.compare_digest(digest, data[-_SHA1_BYTES:]):
            raise ValueError("Keystore was tampered with, or password was incorrect")
    reader = _Reader(data)
    if reader.take(4) != MAGIC:
        raise ValueError("Invalid keystore format")
    version = reader.number()
    if version not in (1, 2):
        raise ValueError(f"keystore version {version} is not known")
    keys: list[JksKey] = []
    trusted: list[bytes] = []
    for _ in range(reader.number()):
        tag = reader.number()
        reader.take(reader.short() + 8)  # alias and time
        if tag == _KEY:
            protected = reader.take(reader.number())
            chain = tuple(reader.certificate(version) for _ in range(reader.number()))
            keys.append(JksKey(protected, chain))
        elif tag == _CERTIFICATE:
            trusted.append(reader.certificate(version))
        else:
            raise ValueError(f"keystore entry of type {tag} is not known")
    return JksStore(tuple(keys), tuple(trusted))


def unprotect(protected: bytes, password: str) -> bytes:
    """Decrypt a private key; returns PKCS #8 in DER. Raises ValueError, also for a wrong
    password."""
    values = list(der.values(der.content_of(protected, der.SEQUENCE)))
    if (
        len(values) != 2
        or der.object_identifier(der.content_of(values[0][1], der.OBJECT_IDENTIFIER)) != _PROTECTOR
    ):
        raise ValueError("the key is protected in a way that is not JKS's")
    protected_key, secret = values[1][1], _utf16(password)
    salt, data = protected_key[:_SHA1_BYTES], protected_key[_SHA1_BYTES:-_SHA1_BYTES]
    stream, block = b"", salt
    while len(stream) < len(data):
        block = hashlib.sha1(secret + block).digest()
        stream += block
    key = bytes(byte ^ other for byte, other in zip(data, stream, strict=False))
    if not hmac.compare_digest(hashlib.sha1(secret + key).digest(), protected_key[-_SHA1_BYTES:]):
        raise ValueError("Cannot recover key: the key password is another one")
    return key


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, count: int) -> bytes:
        part = self._data[self._at : self._at + count]
        if len(part) < count:
            raise ValueError("truncated keystore")
        self._at += count
        return part

    def number(self) -> int:
        return int(struct.unpack(">I", self.take(4))[0])

    def short(self) -> int:
        return int(struct.unpack(">H", self.take(2))[0])

    def certificate(self, version: int) -> bytes:
        if version == 2:
            self.take(self.short())  # certificate type: X.509
        return self.take(self.number())


def _utf16(password: str) -> bytes:
    return password.encode("utf-16-be")
