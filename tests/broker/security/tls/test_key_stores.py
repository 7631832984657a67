from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization

from tests.broker.security.tls.certificates import (
    GivenSettings,
    java_identity,
    java_trust,
    pem_file,
)
from urteil.broker.security.tls.key_stores import StoreError, load_identity, load_trusted
from urteil.harness.cluster.certificates import PASSWORD, Authority

AUTHORITY = Authority()
BROKER = AUTHORITY.issue("broker")


def settings(**given: str) -> Any:
    return GivenSettings({f"ssl.{name.replace('_', '.')}": value for name, value in given.items()})


@pytest.mark.parametrize("kind", ["JKS", "PKCS12"])
def test_store_of_keytool_is_read(tmp_path: Path, kind: str) -> None:
    key = java_identity(tmp_path / "key.store", BROKER, kind)
    trust = java_trust(tmp_path / "trust.store", AUTHORITY, kind)
    given = settings(
        keystore_type=kind,
        keystore_location=key,
        keystore_password=PASSWORD,
        truststore_type=kind,
        truststore_location=trust,
        truststore_password=PASSWORD,
    )
    identity = load_identity(given)
    assert identity is not None
    assert identity.chain == (BROKER.certificate, AUTHORITY.certificate)
    assert identity.key.private_bytes(
        serialization.Encoding.DER,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ) == BROKER.key.private_bytes(
        serialization.Encoding.DER,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    assert load_trusted(given) == (AUTHORITY.certificate,)
    for wrong in (
        settings(keystore_location=key, keystore_password="not it"),
        settings(keystore_location=key, keystore_password=PASSWORD + "x"),
    ):
        with pytest.raises(StoreError, match=str(key)) as refused:
            load_identity(wrong)
        assert "not it" not in str(refused.value)
        assert PASSWORD not in str(refused.value)


def test_pem_file_has_the_key_and_its_chain(tmp_path: Path) -> None:
    path = pem_file(tmp_path / "key.pem", BROKER.key_pem("for the key"), BROKER.pem, AUTHORITY.pem)
    given = settings(keystore_type="PEM", keystore_location=path, key_password="for the key")
    identity = load_identity(given)
    assert identity is not None
    assert identity.chain == (BROKER.certificate, AUTHORITY.certificate)
    with pytest.raises(StoreError, match=r"key\.pem"):
        load_identity(settings(keystore_type="PEM", keystore_location=path, key_password="other"))


def test_inline_pem_is_read() -> None:
    given = settings(
        keystore_type="PEM",
        keystore_key=BROKER.key_pem(),
        keystore_certificate_chain=BROKER.pem,
        truststore_type="PEM",
        truststore_certificates=AUTHORITY.pem,
    )
    identity = load_identity(given)
    assert identity is not None
    assert identity.chain == (BROKER.certificate,)
    assert load_trusted(given) == (AUTHORITY.certificate,)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"keystore_key": "k"}, "can be specified only for PEM, but key store type is JKS"),
        ({"keystore_type": "PEM", "keystore_key": "k"}, "certificate chain is not specified"),
        ({"keystore_type": "PEM", "keystore_certificate_chain": "c"}, "private key is not"),
        (
            {"keystore_type": "PEM", "keystore_location": "/f", "keystore_password": "p"},
            "only key password",
        ),
        ({"keystore_password": "p"}, "key store is not specified, but key store password is"),
        ({"keystore_location": "/f"}, "key store password is not specified"),
        ({"keystore_location": "/no/f", "keystore_password": "p"}, "/no/f: No such file"),
        ({"keystore_type": "WALLET"}, "WALLET"),
    ],
)
def test_contradicting_settings_are_rejected(given: dict[str, str], why: str) -> None:
    with pytest.raises(StoreError, match=why):
        load_identity(settings(**given))


def test_empty_trust_store_is_rejected(tmp_path: Path) -> None:
    path = pem_file(tmp_path / "empty.pem", "nothing here")
    with pytest.raises(StoreError, match=r"empty\.pem"):
        load_trusted(settings(truststore_type="PEM", truststore_location=path))
    with pytest.raises(StoreError, match="trust store password cannot"):
        load_trusted(
            settings(
                truststore_type="PEM", truststore_location=path, truststore_password="whatever"
            )
        )
