"""Keys and trusted certificates from PEM, PKCS #12 and JKS, in files or inline settings.

The valid combinations and the errors are Apache Kafka's (`DefaultSslEngineFactory`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import pkcs12

from urteil.broker.security.tls import jks

PEM = "PEM"
_KEY_BLOCK = re.compile(rb"-+BEGIN [^-]*PRIVATE KEY-+.*?-+END [^-]*PRIVATE KEY-+", re.DOTALL)
_TYPES = (PEM, "PKCS12", "JKS")


class StoreError(ValueError):
    """Settings that contradict each other, or an unreadable store. The message never contains a
    secret."""


class Settings(Protocol):
    """The settings of one listener."""

    def value(self, name: str) -> str | None: ...


@dataclass(frozen=True, slots=True)
class Identity:
    """A private key and its certificates, its own first."""

    key: PrivateKeyTypes
    chain: tuple[x509.Certificate, ...]

    def pem(self) -> bytes:
        """Return key and certificates as PEM; the key is unencrypted, for the TLS library only."""
        key = self.key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        return key + b"".join(map(_pem, self.chain))


def load_identity(settings: Settings) -> Identity | None:
    """Load the key store; None if none is set. Raises StoreError."""
    kind = _type(settings, "ssl.keystore.type")
    inline, chain = (
        settings.value("ssl.keystore.key"),
        settings.value("ssl.keystore.certificate.chain"),
    )
    path, password = (
        settings.value("ssl.keystore.location"),
        settings.value("ssl.keystore.password"),
    )
    key_password = settings.value("ssl.key.password")
    if inline is not None or chain is not None:
        if kind != PEM:
            raise StoreError(
                "SSL private key can be specified only for PEM, but key store type is " + kind + "."
            )
        if chain is None:
            raise StoreError(
                "SSL private key is specified, but certificate chain is not specified."
            )
        if inline is None:
            raise StoreError("SSL certificate chain is specified, but private key is not specified")
        if path is not None:
            raise StoreError("Both SSL key store location and separate private key are specified.")
        _refuse_password(password, "key store")
        return _identity("ssl.keystore.key", inline.encode(), chain.encode(), key_password)
    if path is None:
        if password is not None:
            raise StoreError("SSL key store is not specified, but key store password is specified.")
        return None
    if kind == PEM:
        _refuse_password(password, "key store")
        data = _read(path)
        return _identity(path, data, data, key_password)
    if password is None:
        raise StoreError("SSL key store is specified, but key store password is not specified.")
    return _stored_identity(path, password, key_password or password)


def load_trusted(settings: Settings) -> tuple[x509.Certificate, ...] | None:
    """Load the trust store; None if none is set. Raises StoreError."""
    kind = _type(settings, "ssl.truststore.type")
    inline = settings.value("ssl.truststore.certificates")
    path = settings.value("ssl.truststore.location")
    password = settings.value("ssl.truststore.password")
    if inline is not None:
        if kind != PEM:
            raise StoreError(
                "SSL trust store certs can be specified only for PEM, but trust store type is "
                + kind
                + "."
            )
        if path is not None:
            raise StoreError(
                "Both SSL trust store location and separate trust certificates are specified."
            )
        _refuse_password(password, "trust store")
        return _certificates("ssl.truststore.certificates", inline.encode())
    if path is None:
        if password is not None:
            raise StoreError(
                "SSL trust store is not specified, but trust store password is specified."
            )
        return None
    if kind == PEM:
        _refuse_password(password, "trust store")
        return _certificates(path, _read(path))
    return _stored_trusted(path, password)


def _type(settings: Settings, name: str) -> str:
    kind = (settings.value(name) or "").upper()
    if kind not in _TYPES:
        raise StoreError(f"Invalid value {kind} for configuration {name}: one of {_TYPES}")
    return kind


def _refuse_password(password: str | None, what: str) -> None:
    if password is None:
        return
    if what == "key store":
        raise StoreError(
            "SSL key store password cannot be specified with PEM format, only key password may be "
            "specified."
        )
    raise StoreError("SSL trust store password cannot be specified for PEM format.")


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise StoreError(f"Failed to load SSL keystore {path}: {error.strerror}") from None


def _identity(where: str, key: bytes, chain: bytes, password: str | None) -> Identity:
    block = _KEY_BLOCK.search(key)
    if block is None:
        raise StoreError(f"No matching PRIVATE KEY entries in PEM file: {where}")
    secret = password.encode() if password and b"ENCRYPTED" in block[0] else None
    try:
        loaded = serialization.load_pem_private_key(block[0], secret)
    except (ValueError, TypeError) as error:
        raise StoreError(f"Invalid PEM keystore configs: {where}: {_first_line(error)}") from None
    return Identity(loaded, _certificates(where, chain))


def _certificates(where: str, data: bytes) -> tuple[x509.Certificate, ...]:
    try:
        return tuple(x509.load_pem_x509_certificates(data))
    except ValueError as error:
        raise StoreError(f"No certificates can be read in PEM of {where}: {error}") from None


def _stored_identity(path: str, password: str, key_password: str) -> Identity:
    data = _read(path)
    if data[:4] == jks.MAGIC:
        with _naming(path):
            store = jks.parse_jks(data, password)
            if not store.keys:
                raise ValueError("it has no private key")
            first = store.keys[0]
            key = serialization.load_der_private_key(
                jks.unprotect(first.protected, key_password), None
            )
            return Identity(key, tuple(map(x509.load_der_x509_certificate, first.chain)))
    with _naming(path):
        identity, own, others = pkcs12.load_key_and_certificates(data, password.encode())
        if identity is None or own is None:
            raise ValueError("it has no private key with its certificate")
        return Identity(identity, chain_of(own, others))


def _stored_trusted(path: str, password: str | None) -> tuple[x509.Certificate, ...]:
    data = _read(path)
    with _naming(path):
        if data[:4] == jks.MAGIC:
            store = jks.parse_jks(data, password)
            # like Java's default trust manager: trusted certificates and those of its own keys
            encoded = [*store.trusted, *(key.chain[0] for key in store.keys if key.chain)]
            certificates = tuple(map(x509.load_der_x509_certificate, encoded))
        else:
            secret = None if password is None else password.encode()
            _, own, others = pkcs12.load_key_and_certificates(data, secret)
            certificates = (*([own] if own is not None else []), *others)
        if not certificates:
            raise ValueError("it trusts nobody: no certificate is in it")
        return certificates


def chain_of(
    own: x509.Certificate, others: Sequence[x509.Certificate]
) -> tuple[x509.Certificate, ...]:
    """Order certificates so that each one issued its predecessor."""
    chain, left = [own], list(others)
    while issuer := next(
        (certificate for certificate in left if certificate.subject == chain[-1].issuer), None
    ):
        chain.append(issuer)
        left.remove(issuer)
    return tuple(chain)


class _naming:
    """Adds the name of the store to errors."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, (ValueError, TypeError)) and not isinstance(error, StoreError):
            raise StoreError(
                f"Failed to load SSL keystore {self._path}: {_first_line(error)}"
            ) from None


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
