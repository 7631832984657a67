"""Throughput with TLS, also between brokers, and of clients that authenticate with SCRAM."""

from __future__ import annotations

import contextlib
import datetime
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID
from load_tools import Load

from urteil.harness.scenario import ClusterSpec

RECORDS, SIZE, PARTITIONS = 60_000, 1000, 8
WARM_UP_RECORDS = 20_000
USER, PASSWORD = "bench", "bench-secret"
_MODULES = "org.apache.kafka.common.security"
_SCRAM = f"{_MODULES}.scram.ScramLoginModule required"
_PLAIN = f"{_MODULES}.plain.PlainLoginModule required"
_BROKER = f'username="broker" password="{PASSWORD}" user_broker="{PASSWORD}"'
_PREFIX = "listener.name.internal"

TLS = ClusterSpec(config={"listener.security.protocol.map": "INTERNAL:SSL,CLIENT:PLAINTEXT"})
SCRAM = ClusterSpec(
    config={
        "listener.security.protocol.map": "INTERNAL:SASL_PLAINTEXT,CLIENT:PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        f"{_PREFIX}.plain.sasl.jaas.config": f"{_PLAIN} {_BROKER};",
        f"{_PREFIX}.scram-sha-512.sasl.jaas.config": f"{_SCRAM};",
    }
)


def rows(kind: str, title: str) -> dict[str, str]:
    return {
        f"{kind}_produce_per_s": f"produce 1 KB with {title} (records/s, acks=all)",
        f"{kind}_fetch_mb_per_s": f"fetch 1 KB with {title} (MB/s)",
    }


@contextlib.contextmanager
def with_keys(spec: ClusterSpec) -> Iterator[ClusterSpec]:
    """One certificate for all three brokers, trusted by itself, for as long as the cluster."""
    with tempfile.TemporaryDirectory(prefix="urteil-bench-keys-") as folder:
        file = Path(folder) / "broker.pem"
        file.write_bytes(_identity())
        stores = {
            f"ssl.{kind}.{name}": value
            for kind in ("keystore", "truststore")
            for name, value in (("type", "PEM"), ("location", str(file)))
        }
        nameless = {"ssl.endpoint.identification.algorithm": ""}
        yield msgspec.structs.replace(spec, config=spec.config | stores | nameless)


def _identity() -> bytes:
    key = rsa.generate_private_key(65537, 2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "broker")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=2))
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return private + certificate.public_bytes(serialization.Encoding.PEM)


def measure_tls(load: Load, scale: float) -> dict[str, float]:
    store = load.cluster.spec.config["ssl.truststore.location"]
    load.client = {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": store,
        "ssl.endpoint.identification.algorithm": "",
    }
    return _measure("tls", load, scale)


def measure_scram(load: Load, scale: float) -> dict[str, float]:
    admin = AdminClient({"bootstrap.servers": ",".join(load.cluster.bootstrap)})
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    change = UserScramCredentialUpsertion(USER, info, PASSWORD.encode())
    admin.alter_user_scram_credentials([change])[USER].result(30)
    load.client = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": f'{_SCRAM} username="{USER}" password="{PASSWORD}";',
    }
    return _measure("scram", load, scale)


def _measure(kind: str, load: Load, scale: float) -> dict[str, float]:
    records = int(RECORDS * scale)
    load.create("warm", PARTITIONS, 3)
    load.produce("warm", acks="all", records=int(WARM_UP_RECORDS * scale), size=SIZE)
    load.create(kind, PARTITIONS, 3)
    produced = load.produce(kind, acks="all", records=records, size=SIZE)
    return {
        f"{kind}_produce_per_s": produced.records_per_s,
        f"{kind}_fetch_mb_per_s": load.consume(kind, records),
    }
