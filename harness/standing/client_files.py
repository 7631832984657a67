"""Client configurations for the users of a standing cluster, one for each kind of client.

`java` is a property file for Java clients and Apache Kafka's tools, `librdkafka` one with
librdkafka's names (kcat -F, confluent-kafka), `kafka-python` JSON of keyword arguments.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from urteil.harness.cluster.access import LOGIN, RIGHTS, Access, Security, password_of
from urteil.harness.cluster.certificates import PASSWORD
from urteil.harness.standing.state_file import User

ANYBODY = "client"
"""The user of a cluster without users."""
SUFFIXES = {"java": "properties", "librdkafka": "librdkafka", "kafka-python": "json"}
CA, TRUST_STORE = "ca.pem", "trust.p12"
NETWORK_FOLDER = "network"
MOUNTED = Path("/clients")
"""The folder's path in containers: `-v FOLDER:/clients:ro`. Its parent is private."""


def write_clients(
    folder: Path, access: Access, bootstrap: Sequence[str], network_bootstrap: Sequence[str]
) -> list[User]:
    """Write every user's files into `folder`, which must be readable by its owner only."""
    folder.mkdir(parents=True, exist_ok=True)
    security = access.security
    if security.tls:
        (folder / CA).write_text(access.authority.pem)
        (folder / TRUST_STORE).write_bytes(access.authority.trust_store())
    return [
        _write_user(name, folder, access, bootstrap, network_bootstrap)
        for name in security.users or (ANYBODY,)
    ]


def _write_user(
    name: str,
    folder: Path,
    access: Access,
    bootstrap: Sequence[str],
    network_bootstrap: Sequence[str],
) -> User:
    security = access.security
    if security.tls and not security.sasl:
        issued = access.authority.issue(name)
        (folder / f"{name}.p12").write_bytes(issued.pkcs12())
        (folder / f"{name}.pem").write_text(issued.pem)
        (folder / f"{name}.key").write_text(issued.key_pem())
    files = _write_files(name, folder, folder, security, bootstrap)
    network_files = {}
    if network_bootstrap:
        inside = folder / NETWORK_FOLDER
        inside.mkdir(exist_ok=True)
        network_files = _write_files(name, inside, MOUNTED, security, network_bootstrap)
    return User(
        name=name,
        password=password_of(name) if security.sasl else "",
        rights=RIGHTS[name] if security.acl else "all",
        files=files,
        network_files=network_files,
    )


def _write_files(
    name: str, folder: Path, stores: Path, security: Security, bootstrap: Sequence[str]
) -> dict[str, str]:
    """`stores` is the folder of keys and certificates as the client sees it."""
    servers = ",".join(bootstrap)
    texts = {
        "java": _lines(_java(name, stores, security, servers)),
        "librdkafka": _lines(_librdkafka(name, stores, security, servers)),
        "kafka-python": json.dumps(_kafka_python(name, stores, security, bootstrap), indent=2)
        + "\n",
    }
    paths = {kind: folder / f"{name}.{SUFFIXES[kind]}" for kind in texts}
    for kind, file in paths.items():
        file.write_text(texts[kind])
    return {kind: str(file) for kind, file in paths.items()}


def _java(name: str, stores: Path, security: Security, servers: str) -> dict[str, str]:
    settings = {"bootstrap.servers": servers, "security.protocol": security.protocol}
    if security.tls:
        settings |= _store("truststore", stores / TRUST_STORE)
    if security.tls and not security.sasl:
        settings |= {**_store("keystore", stores / f"{name}.p12"), "ssl.key.password": PASSWORD}
    if security.sasl:
        login = f'username="{name}" password="{password_of(name)}"'
        settings["sasl.mechanism"] = security.mechanisms[0]
        settings["sasl.jaas.config"] = f"{LOGIN[security.sasl]} {login};"
    return settings


def _store(kind: str, file: Path) -> dict[str, str]:
    values = {"type": "PKCS12", "location": str(file), "password": PASSWORD}
    return {f"ssl.{kind}.{field}": value for field, value in values.items()}


def _librdkafka(name: str, stores: Path, security: Security, servers: str) -> dict[str, str]:
    settings = {"bootstrap.servers": servers, "security.protocol": security.protocol}
    if security.tls:
        settings["ssl.ca.location"] = str(stores / CA)
    if security.tls and not security.sasl:
        settings["ssl.certificate.location"] = str(stores / f"{name}.pem")
        settings["ssl.key.location"] = str(stores / f"{name}.key")
    if security.sasl:
        settings["sasl.mechanism"] = security.mechanisms[0]
        settings |= {"sasl.username": name, "sasl.password": password_of(name)}
    return settings


def _kafka_python(
    name: str, stores: Path, security: Security, bootstrap: Sequence[str]
) -> dict[str, object]:
    settings: dict[str, object] = {
        "bootstrap_servers": list(bootstrap),
        "security_protocol": security.protocol,
    }
    if security.tls:
        settings["ssl_cafile"] = str(stores / CA)
    if security.tls and not security.sasl:
        settings["ssl_certfile"] = str(stores / f"{name}.pem")
        settings["ssl_keyfile"] = str(stores / f"{name}.key")
    if security.sasl:
        settings["sasl_mechanism"] = security.mechanisms[0]
        settings |= {"sasl_plain_username": name, "sasl_plain_password": password_of(name)}
    return settings


def _lines(values: dict[str, str]) -> str:
    return "".join(f"{name}={value}\n" for name, value in values.items())
