"""A certificate authority of one cluster or test, and the certificates that it issues."""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

PASSWORD = "urteil-store"
"""The password of every PKCS #12 store."""
Name = str | Sequence[tuple[x509.ObjectIdentifier, str]]
BEFORE, AFTER = datetime.timedelta(days=1), datetime.timedelta(days=365)


@dataclass(frozen=True, slots=True)
class Issued:
    """A certificate with its key and the authority's own certificate."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey
    authority: x509.Certificate

    def pkcs12(self) -> bytes:
        """A key store for Java."""
        return pkcs12.serialize_key_and_certificates(
            b"key",
            self.key,
            self.certificate,
            [self.authority],
            serialization.BestAvailableEncryption(PASSWORD.encode()),
        )

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(serialization.Encoding.PEM).decode()

    def key_pem(self, password: str | None = None) -> str:
        protection: serialization.KeySerializationEncryption = serialization.NoEncryption()
        if password is not None:
            protection = serialization.BestAvailableEncryption(password.encode())
        return self.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, protection
        ).decode()


class Authority:
    """Issues certificates. Its key is never written to disk."""

    def __init__(self, name: str = "Urteil test authority") -> None:
        subject, self._key = _name(name), _new_key()
        self.certificate = _sign_certificate(
            subject, self._key, subject, self._key, is_authority=True
        )

    def issue(self, name: Name, *, hosts: Sequence[str] = ()) -> Issued:
        """A certificate for a common name or a name of several parts: of a server at `hosts`, or of
        a client."""
        key, issuer = _new_key(), self.certificate.subject
        certificate = _sign_certificate(_name(name), key, issuer, self._key, hosts=hosts)
        return Issued(certificate, key, self.certificate)

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(serialization.Encoding.PEM).decode()

    def trust_store(self) -> bytes:
        """The authority as a PKCS #12 trust store for Java."""
        trusted = pkcs12.PKCS12Certificate(self.certificate, b"urteil")
        encryption = serialization.BestAvailableEncryption(PASSWORD.encode())
        return pkcs12.serialize_java_truststore([trusted], encryption)


def _new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _name(name: Name) -> x509.Name:
    attributes = [(NameOID.COMMON_NAME, name)] if isinstance(name, str) else name
    return x509.Name([x509.NameAttribute(oid, value) for oid, value in attributes])


def _sign_certificate(
    subject: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    issuer: x509.Name,
    by: ec.EllipticCurvePrivateKey,
    *,
    is_authority: bool = False,
    hosts: Sequence[str] = (),
) -> x509.Certificate:
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BEFORE)
        .not_valid_after(now + AFTER)
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        .add_extension(_usage(is_authority), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(by.public_key()), critical=False
        )
    )
    if not is_authority:
        purposes = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = builder.add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
    if hosts:
        names = x509.SubjectAlternativeName([_alternative(host) for host in hosts])
        builder = builder.add_extension(names, critical=False)
    return builder.sign(by, hashes.SHA256())


def _usage(is_authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        encipher_only=False,
        decipher_only=False,
    )


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
