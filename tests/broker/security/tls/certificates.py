"""Test certificates in files of each format."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from cryptography.hazmat.primitives.serialization import Encoding, pkcs12

from urteil.harness.cluster.certificates import PASSWORD, Authority, Issued
from urteil.harness.dependencies.java import QUICK_START

LOCAL = "localhost", "127.0.0.1"
"""The hosts of a test's servers."""


def pem_file(path: Path, *sections: str) -> str:
    path.write_text("".join(sections))
    return str(path)


def keytool(*args: str) -> None:
    """Run Java's keytool."""
    argv = ["keytool", *(f"-J{option}" for option in QUICK_START), *args]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def java_identity(path: Path, issued: Issued, kind: str) -> str:
    """Write a key store with keytool from a PKCS #12 file."""
    source = path.with_suffix(".openssl")
    source.write_bytes(issued.pkcs12())
    keytool(
        "-importkeystore", "-noprompt", "-srckeystore", str(source), "-srcstoretype", "PKCS12",
        "-srcstorepass", PASSWORD, "-destkeystore", str(path), "-deststoretype", kind,
        "-deststorepass", PASSWORD, "-destkeypass", PASSWORD,
    )  # fmt: skip
    return str(path)


def java_chain(folder: Path, *, bits: int, signature: str) -> tuple[str, str]:
    """Write a key store (PKCS #12) of `localhost` with RSA of that size, and the PEM of its issuer,
    as old as Java still accepts: the package cryptography no longer signs such certificates."""

    store = folder / "own.p12"
    kept = ("-keystore", str(store), "-storetype", "PKCS12", "-storepass", PASSWORD)
    made = ("-keyalg", "RSA", "-keysize", str(bits), "-sigalg", signature)
    keytool("-genkeypair", "-alias", "ca", "-dname", "CN=ca", "-ext", "bc:c", *kept, *made)
    keytool(
        "-genkeypair", "-alias", "own", "-dname", "CN=localhost", "-ext", "san=dns:localhost",
        "-signer", "ca", *kept, *made,
    )  # fmt: skip
    keytool("-delete", "-alias", "ca", *kept)
    _, _, (root,) = pkcs12.load_key_and_certificates(store.read_bytes(), PASSWORD.encode())
    return str(store), root.public_bytes(Encoding.PEM).decode()


def java_trust(path: Path, authority: Authority, kind: str) -> str:
    """Write a trust store with keytool."""
    pem = pem_file(path.with_suffix(".pem"), authority.pem)
    keytool(
        "-importcert", "-noprompt", "-alias", "ca", "-file", pem, "-keystore", str(path),
        "-storetype", kind, "-storepass", PASSWORD,
    )  # fmt: skip
    return str(path)


class GivenSettings:
    """A listener's settings by name, with Apache Kafka's defaults."""

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
