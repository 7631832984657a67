"""Listeners for users of a standing cluster: ports, racks, TLS, SASL and ACLs.

The lab's own clients keep a plain listener, `CLIENT`, and brokers theirs, `INTERNAL`; both are
`User:ANONYMOUS`, a super user where there are ACLs. Users get the listener `USERS` with the
security that they choose. It is behind the same Toxiproxy, so that faults act on their clients too.
Credentials and ACLs are in ZooKeeper before the first broker starts, so no client can be too early.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kazoo.client import KazooClient

from urteil.chaos.topology import LOCALHOST, USUAL, Layout, Plan
from urteil.harness.cluster.certificates import PASSWORD, Authority
from urteil.harness.cluster.scram_credentials import MECHANISMS, scram_credential
from urteil.harness.targets.target import AUTHORIZER, BrokerNode, Listener

USERS, NETWORK, WAN = "USERS", "NETWORK", "WAN"
ADMIN, ALICE, BOB = "admin", "alice", "bob"
RIGHTS = {
    ADMIN: "all",
    ALICE: "all on topics, groups and transactional ids that begin with alice",
    BOB: "none",
}
"""Of the users of a cluster with ACLs. Without ACLs, each has all."""
KEY_STORE, TRUST_STORE = "broker.p12", "trust.p12"
_MODULE = "org.apache.kafka.common.security"
LOGIN = {
    "plain": f"{_MODULE}.plain.PlainLoginModule required",
    "scram": f"{_MODULE}.scram.ScramLoginModule required",
}
"""Value of `--sasl` to the JAAS login module."""
_PREFIXED = {"Topic": "Topic", "Group": "Group", "TransactionalId": "TransactionalId"}


def password_of(user: str) -> str:
    """A user's password. It is the same at every start, so client configurations stay valid."""
    return f"{user}-secret"


@dataclass(frozen=True, slots=True, kw_only=True)
class Security:
    """The security of the users' listener. `sasl` is `scram`, `plain` or empty."""

    tls: bool = False
    sasl: str = ""
    acl: bool = False

    def __bool__(self) -> bool:
        return self.tls or bool(self.sasl) or self.acl

    @property
    def protocol(self) -> str:
        if self.sasl:
            return "SASL_SSL" if self.tls else "SASL_PLAINTEXT"
        return "SSL" if self.tls else "PLAINTEXT"

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """SASL mechanisms for clients. The written configurations use the first."""
        return {"scram": MECHANISMS, "plain": ("PLAIN",)}.get(self.sasl, ())

    @property
    def users(self) -> tuple[str, ...]:
        """Users with credentials; with TLS alone, users with certificates."""
        return (ADMIN, ALICE, BOB) if self else ()

    def problem(self) -> str:
        """The reason for which this security is impossible, with the remedy; empty if it is
        possible."""
        if self.acl and not (self.tls or self.sasl):
            return (
                "--acl needs users: add --sasl scram, --sasl plain, or --tls "
                "(users by certificates)"
            )
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The access to a cluster. Brokers receive the `racks` in turn."""

    layout: Layout = USUAL
    racks: Sequence[str] = ()
    security: Security = Security()
    authority: Authority = field(default_factory=Authority)

    def listeners(self, plan: Plan, broker: str) -> tuple[Listener, ...]:
        """The listeners of a broker for users and for the other cluster's applications, besides
        that of the lab's own clients."""
        ports = {USERS: plan.ports.users, NETWORK: plan.ports.network}
        users = [
            Listener(
                name=name,
                port=port,
                advertised=plan.client_address(broker, port),
                protocol=self.security.protocol,
            )
            for name, port in ports.items()
            if port in plan.client_ports[1:]
        ]
        wan = Listener(name=WAN, port=plan.ports.wan, advertised=plan.wan_address(broker))
        return (*users, *((wan,) if self.layout.wan else ()))

    def properties(self, node: BrokerNode) -> dict[str, str]:
        """Settings of one broker, in addition to the usual ones."""
        properties = self._rack(node)
        for listener in node.further if self.security else ():
            prefix = f"listener.name.{listener.name.lower()}."
            settings = {**self._tls(node), **self._sasl()}
            properties |= {prefix + name: value for name, value in settings.items()}
        if self.security.sasl:
            properties["sasl.enabled.mechanisms"] = ",".join(self.security.mechanisms)
        if self.security.tls:
            properties["ssl.principal.mapping.rules"] = "RULE:^CN=([^,]+).*$/$1/,DEFAULT"
        if self.security.acl:
            properties["authorizer.class.name"] = AUTHORIZER
            properties["super.users"] = f"User:ANONYMOUS;User:{ADMIN}"
        return properties

    def files(self, node: BrokerNode) -> dict[str, bytes]:
        """Files of a broker's folder by name."""
        if not self.security.tls:
            return {}
        hosts = {
            LOCALHOST,
            "localhost",
            node.name,
            *(listener.advertised[0] for listener in node.listeners),
        }
        issued = self.authority.issue(node.name, hosts=sorted(hosts))
        return {KEY_STORE: issued.pkcs12(), TRUST_STORE: self.authority.trust_store()}

    @property
    def is_seeded(self) -> bool:
        """Whether ZooKeeper needs credentials or ACLs before the first broker starts."""
        return self.security.acl or self.security.sasl == "scram"

    def seed(self, zookeeper: KazooClient) -> None:
        """Write credentials and ACLs, as Apache Kafka's tools do without a broker."""
        if self.security.sasl == "scram":
            for user in self.security.users:
                credentials = {
                    mechanism: scram_credential(mechanism, password_of(user))
                    for mechanism in MECHANISMS
                }
                _write(zookeeper, f"/config/users/{user}", {"version": 1, "config": credentials})
        if self.security.acl:
            rule = {"principal": f"User:{ALICE}", "permissionType": "Allow", "operation": "All",
                    "host": "*"}  # fmt: skip
            for kind in _PREFIXED:
                path = f"/kafka-acl-extended/prefixed/{kind}/{ALICE}"
                _write(zookeeper, path, {"version": 1, "acls": [rule]})

    def _rack(self, node: BrokerNode) -> dict[str, str]:
        if not self.racks:
            return {}
        place = node.broker_id - self.layout.first_broker_id
        return {"broker.rack": self.racks[place % len(self.racks)]}

    def _tls(self, node: BrokerNode) -> dict[str, str]:
        if not self.security.tls:
            return {}
        by_certificate = self.security.acl and not self.security.sasl
        client_auth = "required" if by_certificate else "requested"
        return {
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": str(node.home / KEY_STORE),
            "ssl.keystore.password": PASSWORD,
            "ssl.key.password": PASSWORD,
            "ssl.truststore.type": "PKCS12",
            "ssl.truststore.location": str(node.home / TRUST_STORE),
            "ssl.truststore.password": PASSWORD,
            **({} if self.security.sasl else {"ssl.client.auth": client_auth}),
        }

    def _sasl(self) -> Mapping[str, str]:
        sasl = self.security.sasl
        if not sasl:
            return {}
        users = (f'user_{user}="{password_of(user)}"' for user in self.security.users)
        module = " ".join([LOGIN[sasl], *users]) if sasl == "plain" else LOGIN[sasl]
        return {
            f"{user.lower()}.sasl.jaas.config": f"{module};" for user in self.security.mechanisms
        }


def _write(zookeeper: KazooClient, path: str, value: Mapping[str, object]) -> None:
    zookeeper.create(path, json.dumps(value).encode(), makepath=True)
