"""TLS contexts of a listener's `ssl.*` settings, for its clients and for this broker as a
client."""

from __future__ import annotations

import os
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding

from urteil.broker.security.tls.ciphers import openssl_ciphers
from urteil.broker.security.tls.distinguished_names import rfc2253
from urteil.broker.security.tls.key_stores import (
    Identity,
    Settings,
    StoreError,
    load_identity,
    load_trusted,
)

_CLIENT_AUTH = {
    "none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED,
}  # fmt: skip
_VERSIONS = {
    "TLSv1": ssl.TLSVersion.TLSv1, "TLSv1.1": ssl.TLSVersion.TLSv1_1,
    "TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}  # fmt: skip


class TlsSettings(Settings, Protocol):
    """The settings of one listener; some are lists."""

    def value(self, name: str) -> Any: ...


@dataclass(frozen=True, slots=True)
class TlsMaterial:
    """The key material of contexts. Raises StoreError for settings that contradict each other."""

    identity: Identity | None
    trusted: tuple[x509.Certificate, ...] | None
    client_auth: str
    protocols: tuple[str, ...]
    ciphers: tuple[str, ...]
    checks_hostname: bool

    @classmethod
    def load(cls, settings: TlsSettings, client_auth: str | None = None) -> TlsMaterial:
        """Load the stores; `client_auth` overrides the setting."""
        return cls(
            identity=load_identity(settings),
            trusted=load_trusted(settings),
            client_auth=(client_auth or settings.value("ssl.client.auth")).lower(),
            protocols=tuple(settings.value("ssl.enabled.protocols")),
            ciphers=tuple(filter(None, settings.value("ssl.cipher.suites") or ())),
            checks_hostname=(
                (settings.value("ssl.endpoint.identification.algorithm") or "").lower() == "https"
            ),
        )

    def server_context(self) -> ssl.SSLContext:
        """Return the context for clients. Raises StoreError; a server needs a key."""
        if self.identity is None:
            raise StoreError("ssl.keystore.location (or ssl.keystore.key) is needed to serve SSL")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._set_up(context)
        context.verify_mode = _CLIENT_AUTH[self.client_auth]
        return context

    def client_context(self) -> ssl.SSLContext:
        """Return the context for connections to other brokers' listener of this name."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._set_up(context)
        context.check_hostname = self.checks_hostname
        if self.trusted is None:
            context.load_default_certs()
        return context

    def _set_up(self, context: ssl.SSLContext) -> None:
        _choose_versions(context, self.protocols)
        context.options |= ssl.OP_NO_RENEGOTIATION
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # as Java: trust all in the store
        try:
            if self.ciphers:
                chosen, has_newest = openssl_ciphers(self.ciphers)
                if not has_newest:
                    _avoid_newest(context)
                if chosen:
                    context.set_ciphers(":".join(chosen))
            self._lower_security_level(context)
            if self.identity is not None:
                _load_identity(context, self.identity)
            if self.trusted is not None:
                ders = b"".join(
                    certificate.public_bytes(Encoding.DER) for certificate in self.trusted
                )
                context.load_verify_locations(cadata=ders)
        except (ssl.SSLError, ValueError) as error:
            raise StoreError(f"TLS cannot be set up: {error}") from None

    def _lower_security_level(self, context: ssl.SSLContext) -> None:
        """Lower OpenSSL's requirements as far as the certificates in the stores need it: Java
        accepts SHA-1 and RSA of 1,024 bits."""
        chain = self.identity.chain if self.identity is not None else ()
        level = min(map(_security_level, (*chain, *(self.trusted or ()))), default=2)
        if level < 2:
            ciphers = (cipher["name"] for cipher in context.get_ciphers())
            context.set_ciphers(f"{':'.join(ciphers)}:@SECLEVEL={level}")


def _security_level(certificate: x509.Certificate) -> int:
    """Return the highest security level of OpenSSL, up to 2 (Debian's default), that accepts the
    certificate.

    Self-signatures of roots do not count. Unknown algorithms lower nothing.
    """
    is_root = certificate.issuer == certificate.subject
    try:
        if not is_root and isinstance(certificate.signature_hash_algorithm, hashes.SHA1):
            return 0
        key = certificate.public_key()
    except UnsupportedAlgorithm:
        return 2
    return 1 if isinstance(key, rsa.RSAPublicKey) and 1024 <= key.key_size < 2048 else 2


def _choose_versions(context: ssl.SSLContext, names: Sequence[str]) -> None:
    if unknown := [name for name in names if name not in _VERSIONS]:
        raise StoreError(
            f"Invalid value {','.join(unknown)} for configuration ssl.enabled.protocols: "
            f"one of {', '.join(_VERSIONS)}"
        )
    if not names:
        raise StoreError("Invalid value for configuration ssl.enabled.protocols: none is left")
    order = list(_VERSIONS)
    enabled = sorted(names, key=order.index)
    if order.index(enabled[-1]) - order.index(enabled[0]) >= len(set(enabled)):
        raise StoreError(
            f"Invalid value {','.join(names)} for configuration ssl.enabled.protocols: versions "
            "between two that are enabled are too"
        )
    context.minimum_version, context.maximum_version = _VERSIONS[enabled[0]], _VERSIONS[enabled[-1]]


def _avoid_newest(context: ssl.SSLContext) -> None:
    if context.minimum_version == ssl.TLSVersion.TLSv1_3:
        raise StoreError("ssl.cipher.suites has none of TLS 1.3, which alone is enabled")
    context.maximum_version = min(context.maximum_version, ssl.TLSVersion.TLSv1_2)


def _load_identity(context: ssl.SSLContext, identity: Identity) -> None:
    """Load an identity into a context. The library reads keys from files only: an in-memory file,
    never on disk."""
    fd = os.memfd_create("identity")
    try:
        os.write(fd, identity.pem())
        context.load_cert_chain(f"/proc/self/fd/{fd}")
    finally:
        os.close(fd)


def subject(certificate: bytes) -> str:
    """Return the subject of a DER certificate: `CN=alice,O=acme`."""
    return rfc2253(x509.load_der_x509_certificate(certificate).subject.public_bytes())
