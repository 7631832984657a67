"""Checks before keys and trust stores are replaced at runtime (`SslFactory` of Apache Kafka)."""

from __future__ import annotations

import ssl

from cryptography import x509

from urteil.broker.security.tls.contexts import TlsMaterial
from urteil.broker.security.tls.distinguished_names import rfc2253
from urteil.broker.security.tls.key_stores import Identity


def check_own_trust(material: TlsMaterial) -> None:
    """Check that the material trusts its own certificate: brokers of one cluster are alike, so a
    broker that rejects itself rejects its peers. Raises ValueError with the error of the
    handshake."""
    _handshake(material, material)


def check_replacement(
    now: TlsMaterial, then: TlsMaterial, *, allows_names: bool, allows_hosts: bool, by_peers: bool
) -> None:
    """Check a replacement. Raises ValueError. `by_peers`: other brokers connect, still with the old
    material."""
    if (now.identity is None) != (then.identity is None):
        what = "added" if now.identity is None else "removed"
        raise ValueError(f"Keystore cannot be {what} dynamically")
    if (now.trusted is None) != (then.trusted is None):
        what = "added" if now.trusted is None else "removed"
        raise ValueError(f"Truststore cannot be {what} dynamically")
    if now.identity is not None and then.identity is not None:
        _check_names(now.identity, then.identity, allows_names, allows_hosts)
    if by_peers:
        _handshake(now, then)
        _handshake(then, now)


def _check_names(now: Identity, then: Identity, allows_names: bool, allows_hosts: bool) -> None:
    old, new = now.chain[0], then.chain[0]
    if not allows_names and old.subject != new.subject:
        raise ValueError(
            f"Keystore DistinguishedName does not match:  existing={{{_name(old)}}}, "
            f"new={{{_name(new)}}}"
        )
    if not allows_hosts and not _alternatives(old) <= _alternatives(new):
        raise ValueError("Keystore SubjectAltNames do not match: some would be gone")


def _name(certificate: x509.Certificate) -> str:
    return rfc2253(certificate.subject.public_bytes())


def _alternatives(certificate: x509.Certificate) -> frozenset[x509.GeneralName]:
    try:
        alternative_names = certificate.extensions.get_extension_for_class(
            x509.SubjectAlternativeName
        )
    except x509.ExtensionNotFound:
        return frozenset()
    return frozenset(alternative_names.value)


def _handshake(server: TlsMaterial, client: TlsMaterial) -> None:
    """Both sides in memory, names of hosts aside."""
    context = client.client_context()
    context.check_hostname = False
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [
        context.wrap_bio(to_client, to_server, server_side=False),
        server.server_context().wrap_bio(to_server, to_client, server_side=True),
    ]
    try:
        for _ in range(4):  # more steps than any handshake has
            for side in sides:
                _continue_handshake(side)
    except ssl.SSLError as error:
        raise ValueError(
            "A client SSLEngine created with the provided settings can't connect to a server "
            f"SSLEngine created with those settings: {error.reason or error}"
        ) from None


def _continue_handshake(side: ssl.SSLObject) -> None:
    try:
        side.do_handshake()
        side.read(1)  # a TLS 1.3 client learns of its rejection after its own handshake
    except ssl.SSLWantReadError:
        return
