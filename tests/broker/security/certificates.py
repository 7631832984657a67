"""A certificate authority of a test, and what it issues, as files of each kind."""

from __future__ import annotations

import datetime
import ipaddress
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

PASSWORD = "store-Secret-1"


@dataclass(frozen=True, slots=True)
class Issued:
    """A certificate with its key, both also as PEM."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

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
    """Signs what it is asked to sign."""

    def __init__(self, name: str = "test CA") -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.own = Issued(_signed(subject, key, subject, key, authority=True), key)

    @property
    def pem(self) -> str:
        return self.own.pem

    def issue(
        self,
        name: str | Sequence[tuple[x509.ObjectIdentifier, str]],
        *,
        hosts: Sequence[str] = ("localhost", "127.0.0.1"),
    ) -> Issued:
        """For a common name, or a whole name; `hosts` are those that it may serve."""
        parts = [(NameOID.COMMON_NAME, name)] if isinstance(name, str) else name
        subject = x509.Name([x509.NameAttribute(oid, value) for oid, value in parts])
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = _signed(subject, key, self.own.certificate.subject, self.own.key, hosts=hosts)
        return Issued(certificate, key)


def _signed(
    subject: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    issuer: x509.Name,
    by: ec.EllipticCurvePrivateKey,
    *,
    authority: bool = False,
    hosts: Sequence[str] = (),
) -> x509.Certificate:
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=30))
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
    )
    if not authority:
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
    if hosts:
        names = x509.SubjectAlternativeName([_alternative(one) for one in hosts])
        builder = builder.add_extension(names, critical=False)
    return builder.sign(by, hashes.SHA256())


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def pem_file(path: Path, *parts: str) -> str:
    path.write_text("".join(parts))
    return str(path)


def keytool(*args: str) -> None:
    """Run Java's own tool, which makes the stores that users have."""
    done = subprocess.run(
        ["keytool", *args], capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def java_identity(path: Path, issued: Issued, authority: Authority, kind: str) -> str:
    """A key store that keytool wrote from the PKCS #12 of another program."""
    source = path.with_suffix(".openssl")
    source.write_bytes(
        serialization.pkcs12.serialize_key_and_certificates(
            b"own",
            issued.key,
            issued.certificate,
            [authority.own.certificate],
            serialization.BestAvailableEncryption(PASSWORD.encode()),
        )
    )
    keytool(
        "-importkeystore", "-noprompt", "-srckeystore", str(source), "-srcstoretype", "PKCS12",
        "-srcstorepass", PASSWORD, "-destkeystore", str(path), "-deststoretype", kind,
        "-deststorepass", PASSWORD, "-destkeypass", PASSWORD,
    )  # fmt: skip
    return str(path)


def java_chain(folder: Path, *, bits: int, signature: str) -> tuple[str, str]:
    """A key store (PKCS #12) of `localhost` with RSA of so many bits, and the PEM of who signed it,
    as old as Java still takes them: cryptography signs no such thing any more."""

    def of(alias: str, command: str, *args: str) -> None:
        store = str(folder / ("ca.p12" if alias == "ca" else "own.p12"))
        kept = ("-keystore", store, "-storetype", "PKCS12", "-storepass", PASSWORD)
        keytool(command, "-alias", alias, *kept, *args)

    pem, request, signed = (str(folder / name) for name in ("ca.pem", "own.csr", "own.pem"))
    made = ("-keyalg", "RSA", "-keysize", str(bits), "-sigalg", signature)
    of("ca", "-genkeypair", "-dname", "CN=ca", "-ext", "bc:c", *made)
    of("ca", "-exportcert", "-rfc", "-file", pem)
    of("own", "-genkeypair", "-dname", "CN=localhost", *made)
    of("own", "-certreq", "-file", request)
    san = ("-ext", "san=dns:localhost")
    of("ca", "-gencert", "-infile", request, "-outfile", signed, "-rfc", *made[4:], *san)
    of("its-ca", "-importcert", "-noprompt", "-file", pem)
    of("own", "-importcert", "-noprompt", "-file", signed)
    return str(folder / "own.p12"), Path(pem).read_text()


def java_trust(path: Path, authority: Authority, kind: str) -> str:
    """A trust store that keytool wrote."""
    pem = pem_file(path.with_suffix(".pem"), authority.pem)
    keytool(
        "-importcert", "-noprompt", "-alias", "ca", "-file", pem, "-keystore", str(path),
        "-storetype", kind, "-storepass", PASSWORD,
    )  # fmt: skip
    return str(path)


class GivenSettings:
    """A listener's settings by name; the rest are Apache Kafka's defaults."""

    def __init__(self, given: Mapping[str, object]) -> None:
        self._given = {
            "ssl.keystore.type": "JKS",
            "ssl.truststore.type": "JKS",
            "ssl.client.auth": "none",
            "ssl.enabled.protocols": ["TLSv1.2", "TLSv1.3"],
            "ssl.endpoint.identification.algorithm": "https",
            **given,
        }

    def value(self, name: str) -> object:
        return self._given.get(name)
