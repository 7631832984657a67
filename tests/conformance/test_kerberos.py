"""GSSAPI listeners of both clusters in one realm."""

from __future__ import annotations

import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.broker.security.kerberos.kdc import REALM, Kdc, kcat, program
from tests.conformance.kafka_tools import tool
from tests.conformance.pair import Pair
from tests.conformance.sasl import TICKETS, Talk, place, realm_of
from tests.conformance.side import CLOSED, Side
from urteil.broker.wire.messages import MetadataRequest

TOKENS = (b"", b"x", b"\x60\x04\x06\x04\x05\x0a", b"\x60" + b"\0" * 300)


@pytest.fixture(scope="module")
def kdc(sasl: Pair) -> Kdc:
    return realm_of(sasl)


@pytest.mark.parametrize("mechanism", ["GSSAPI", "PLAIN", "gssapi", ""])
def test_handshakes_are_answered_alike(sasl: Pair, kdc: Kdc, mechanism: str) -> None:
    def ask(side: Side) -> Any:
        with Talk(side, TICKETS) as talk:
            return talk.shake(mechanism)

    sasl.assert_same(ask)


@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize("token", TOKENS)
def test_invalid_ticket_is_rejected_alike(sasl: Pair, kdc: Kdc, token: bytes, version: int) -> None:
    def ask(side: Side) -> Any:
        with Talk(side, TICKETS) as talk:
            talk.shake("GSSAPI")
            return talk.show(token, version), talk.ask(MetadataRequest(topics=[]), 1) == CLOSED

    sasl.assert_same(ask)


def test_java_client_gets_the_principal_of_the_mapping_rules(
    sasl: Pair, kdc: Kdc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DelegationTokenCommand of Apache Kafka 3.9.1 prints the broker's principal for it."""
    keytab = kdc.keytab("app/web")
    config = tmp_path / "client.properties"
    config.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=GSSAPI\nsasl.kerberos.service.name=kafka\n"
        "sasl.jaas.config=com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true "
        f'storeKey=true keyTab="{keytab}" principal="app/web@{REALM}";\n'
    )
    monkeypatch.setenv("JDK_JAVA_OPTIONS", f"-Djava.security.krb5.conf={kdc.config}")
    args = ["--command-config", str(config), "--create", "--max-life-time-period", "-1"]
    with ThreadPoolExecutor(2) as pool:
        made = pool.map(
            lambda side: tool("org.apache.kafka.tools.DelegationTokenCommand", place(side, TICKETS),
                              *args),
            (sasl.ours, sasl.theirs),
        )  # fmt: skip
        owners = [sorted(set(re.findall(r"User:\S+", text))) for text in made]
    assert owners == [["User:app.web"]] * 2


def test_librdkafka_client_authenticates(sasl: Pair, kdc: Kdc, tmp_path: Path) -> None:
    """Debian's kcat; that of PyPI's wheel has no GSSAPI."""
    cache = f"FILE:{tmp_path}/cache"
    keytab = kdc.keytab("alice")
    subprocess.run(
        [program("kinit"), "-c", cache, "-k", "-t", str(keytab), "alice"],
        env={**os.environ, **kdc.env}, check=True, timeout=60,
    )  # fmt: skip

    def ask(side: Side) -> Any:
        argv = [
            kcat(),
            "-b",
            place(side, TICKETS),
            "-L",
            "-m",
            "20",
            "-X",
            "sasl.mechanisms=GSSAPI",
        ]
        argv += ["-X", "security.protocol=SASL_PLAINTEXT", "-X", "sasl.kerberos.kinit.cmd=true"]
        env = {**os.environ, **kdc.env, "KRB5CCNAME": cache}
        done = subprocess.run(
            argv, env=env, capture_output=True, text=True, timeout=60, check=False
        )
        return done.returncode, re.findall(r"(\d+) brokers", done.stdout)

    assert sasl.assert_same(ask) == (0, ["1"])
