"""Kerberos: a real KDC, brokers with a keytab, and Debian's kcat as client."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker.nodes import STEADY, Nodes
from tests.broker.security.kerberos.kdc import REALM, Kdc, kcat, program
from tests.broker.zookeeper.server import ZooKeeperServer
from tests.ports import free_port
from tests.waiting import until
from urteil.broker.security.kerberos.gssapi import GssapiExchange, load_service
from urteil.broker.security.kerberos.kerberos_names import PrincipalRules
from urteil.broker.security.sasl.sasl_exchange import BrokenExchange

RULES = (
    "RULE:[1:$1@$0](admin@.*)s/@.*//U", "RULE:[2:$2-$1](.*-http)s/-//g/L",
    f"RULE:[1:$1@$0](.*@{REALM})s/(.)@.*/$1/", "DEFAULT",
)  # fmt: skip
NAMES = {
    f"alice@{REALM}": "alice",
    f"admin@{REALM}": "ADMIN",
    f"HTTP/Web-One@{REALM}": None,
    f"http/Web-One@{REALM}": "weboneHTTP".lower(),
    "simple": "simple",
    f"bob/host@{REALM}": "bob",
    "bob@ELSEWHERE": None,
    f"a@b@{REALM}": None,
}


@pytest.mark.parametrize("principal", NAMES)
def test_principal_is_mapped_to_a_user(principal: str) -> None:
    rules = PrincipalRules(RULES, REALM)
    expected = NAMES[principal]
    if expected is None and not principal.startswith("HTTP"):
        with pytest.raises(ValueError, match=r"No rules apply to|Malformed Kerberos name"):
            rules.user(principal)
    elif expected is not None:
        assert rules.user(principal) == expected
    else:
        assert rules.user(principal) == "HTTP"  # no rule but DEFAULT, by its first part


@pytest.mark.parametrize("rule", ["RULE:[1:$1", "DEFAULTS", "RULE:[1:$1](()", "rule:[1:$1]"])
def test_invalid_rule_is_rejected(rule: str) -> None:
    with pytest.raises(ValueError, match="Invalid rule"):
        PrincipalRules([rule], REALM)


def test_name_that_is_not_simple_is_rejected() -> None:
    with pytest.raises(ValueError, match="Non-simple name"):
        PrincipalRules(["RULE:[1:$1@$0]"], REALM).user(f"alice@{REALM}")


@pytest.fixture(scope="module")
def kdc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    kdc = Kdc(tmp_path_factory.mktemp("realm") / "kdc")
    yield kdc
    kdc.close()


OPTIONS = {"keyTab": "/nowhere", "principal": f"kafka/x@{REALM}", "serviceName": "kafka"}
WRONG = {
    "No serviceName defined": ({**OPTIONS, "serviceName": ""}, None),
    "Conflicting serviceName": (OPTIONS, "other"),
    "needs keyTab and principal": ({"principal": "kafka/x"}, "kafka"),
    "kafka/x@URTEIL.TEST of /nowhere": (OPTIONS, None),
}


@pytest.mark.parametrize("message", WRONG)
def test_service_without_a_key_is_rejected(message: str) -> None:
    options, name = WRONG[message]
    with pytest.raises(ValueError, match=message):
        load_service(options, name, ["DEFAULT"])


def test_missing_library_names_the_package() -> None:
    code = (
        "from urteil.broker.security.kerberos import gss_library as g\n"
        "g.GSS = 'libgssapi_of_nobody.so.2'\n"
        "from urteil.broker.security.kerberos.gssapi import load_service\n"
        f"load_service({OPTIONS!r}, None, ['DEFAULT'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=240)
    assert "apt-get install libgssapi-krb5-2" in done.stderr


OFFER = bytes.fromhex("601006062b0601050502a0063004a0023000")
"""Of SPNEGO, which Apache Kafka does not speak."""


def test_invalid_ticket_is_rejected(kdc: Kdc, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in kdc.env.items():
        monkeypatch.setenv(name, value)
    keytab = kdc.keytab("kafka/refuses")
    options = {"keyTab": str(keytab), "principal": f"kafka/refuses@{REALM}"}
    service = load_service(options, "kafka", ["DEFAULT"])
    for token in (b"", b"x", OFFER):
        with pytest.raises(BrokenExchange, match="GSSAPI"):
            GssapiExchange(service).step(token)


class KerberosNodes(Nodes):
    """Two brokers with a GSSAPI listener for clients and for each other."""

    def __init__(self, folder: Path, zookeeper: ZooKeeperServer, chroot: str, keytab: Path) -> None:
        super().__init__(folder, zookeeper, chroot, 2, **STEADY)
        self.tickets = {broker: free_port() for broker in self.ports}
        self._keytab = keytab

    def properties(self, broker: int) -> dict[str, str]:
        own = super().properties(broker)
        module = (
            "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true "
            f'keyTab="{self._keytab}" principal="kafka/localhost@{REALM}";'
        )
        return own | {
            "listeners": f"{own['listeners']},TICKETS://localhost:{self.tickets[broker]}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,TICKETS:SASL_PLAINTEXT",
            "inter.broker.listener.name": "TICKETS",
            "sasl.mechanism.inter.broker.protocol": "GSSAPI",
            "sasl.enabled.mechanisms": "GSSAPI",
            "sasl.kerberos.service.name": "kafka",
            "listener.name.tickets.gssapi.sasl.jaas.config": module,
            "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
            "super.users": "User:kafka;User:alice",
            "default.replication.factor": "2",
        }


def ask(kdc: Kdc, cache: str, port: int, *more: str) -> subprocess.CompletedProcess[str]:
    """Run kcat with a ticket cache."""
    settings = {
        "security.protocol": "SASL_PLAINTEXT", "sasl.mechanisms": "GSSAPI",
        "sasl.kerberos.service.name": "kafka", "sasl.kerberos.kinit.cmd": "true",
    }  # fmt: skip
    options = [part for name, value in settings.items() for part in ("-X", f"{name}={value}")]
    return subprocess.run(
        [kcat(), "-b", f"localhost:{port}", *options, *more],
        env={**os.environ, **kdc.env, "KRB5CCNAME": cache},
        capture_output=True, text=True, timeout=240, input="one\ntwo\n", check=False,
    )  # fmt: skip


def test_clients_and_brokers_authenticate_as_their_principals(
    kdc: Kdc, tmp_path: Path, zookeeper: ZooKeeperServer, chroot: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    for name, value in kdc.env.items():
        monkeypatch.setenv(name, value)
    service = kdc.keytab("kafka/localhost")
    caches = {}
    for user in ("alice", "bob"):
        caches[user] = f"FILE:{tmp_path}/{user}.cache"
        argv = [program("kinit"), "-c", caches[user], "-k", "-t", str(kdc.keytab(user)), user]
        subprocess.run(argv, check=True, timeout=240)
    with KerberosNodes(tmp_path, zookeeper, chroot, service) as nodes:
        sent = ask(kdc, caches["alice"], nodes.tickets[1], "-P", "-t", "orders")
        assert sent.returncode == 0, sent.stderr
        until(lambda: nodes.isr_size("orders", 0) == 2, "in sync")
        read = ask(kdc, caches["alice"], nodes.tickets[1], "-C", "-t", "orders", "-e", "-q")
        assert read.stdout.splitlines() == ["one", "two"], read.stderr
        refused = ask(kdc, caches["bob"], nodes.tickets[1], "-L", "-t", "orders", "-m", "10")
        assert "Topic authorization failed" in refused.stdout, refused.stdout + refused.stderr
        nobody = ask(kdc, f"FILE:{tmp_path}/none", nodes.tickets[1], "-L", "-m", "5")
        assert nobody.returncode != 0
        logs = [nodes.log(broker).read_text() for broker in nodes.ports]
        assert "User:bob is Denied" in "".join(logs)
        assert not [log for log in logs if "GSSAPI: " in log]
