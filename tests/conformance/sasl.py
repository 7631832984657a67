"""Both kinds of broker with listeners that ask who comes, and talk to these in raw frames."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.broker.security.kerberos.kdc import REALM, Kdc, program
from tests.conformance.pair import LASTING, QUICK, Pair
from tests.conformance.plain import plain
from tests.conformance.side import ANSWER_TIMEOUT_S, CLOSED, CORRELATION, Side, read_frame
from urteil.broker.security.sasl.plain import PlainLogin
from urteil.broker.security.sasl.sasl_exchange import Login
from urteil.broker.security.sasl.scram import HASHES, ScramLogin, credential
from urteil.broker.wire.framing import RequestHeader, decode_response, encode_request
from urteil.broker.wire.messages import SaslAuthenticateRequest, SaslHandshakeRequest
from urteil.broker.wire.schema import Message
from urteil.broker.zookeeper.znodes import encode_config, encode_config_change
from urteil.harness.cluster import Cluster
from urteil.harness.cluster.certificates import Authority
from urteil.harness.dependencies.installation import MissingDependency
from urteil.harness.scenario import ClusterSpec
from urteil.harness.targets import KafkaTarget, Target, UrteilTarget
from urteil.harness.targets.target import BrokerNode, common_properties

USERS, TIMED, TICKETS = "USERS", "TIMED", "TICKETS"
TLS, STRICT, SECRET = "TLS", "STRICT", "SECRET"
PORTS = {USERS: 9644, TIMED: 9645, TICKETS: 9646, TLS: 9647, STRICT: 9648, SECRET: 9649}
PROTOCOLS = "listener.security.protocol.map"
SESSION_MS = 7000
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
MASTER_KEY = "the brokers' own secret"
PASSWORDS = {"alice": "alice-Secret", "bob": "bob-Secret"}

_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
_KNOWN = " ".join(f'user_{name}="{password}"' for name, password in PASSWORDS.items())


def sasl_properties(node: BrokerNode) -> dict[str, str]:
    """Three listeners more, one of them with sessions that end, and one over TLS."""
    common = common_properties(node)
    asking = {USERS: "SASL_PLAINTEXT", TIMED: "SASL_PLAINTEXT", SECRET: "SASL_SSL"}
    more = "".join(f",{name}://{node.address}:{PORTS[name]}" for name in asking)
    protocols = "".join(f",{name}:{protocol}" for name, protocol in asking.items())
    properties = {
        "listeners": common["listeners"] + more,
        "advertised.listeners": common["advertised.listeners"] + more,
        "listener.security.protocol.map": common["listener.security.protocol.map"] + protocols,
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "listener.name.timed.connections.max.reauth.ms": str(SESSION_MS),
        "delegation.token.master.key": MASTER_KEY,
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "super.users": "User:ANONYMOUS",
        "allow.everyone.if.no.acl.found": "true",
    }
    for name in asking:
        prefix = f"listener.name.{name.lower()}."
        properties[f"{prefix}plain.sasl.jaas.config"] = f"{_PLAIN} {_KNOWN};"
        for mechanism in MECHANISMS[1:]:
            properties[f"{prefix}{mechanism.lower()}.sasl.jaas.config"] = f"{_SCRAM};"
    return properties


@dataclass(frozen=True, kw_only=True)
class SaslUrteil(UrteilTarget):
    authority: Authority
    realm: Kdc | None = None

    def properties(self, node: BrokerNode) -> dict[str, str]:
        own = UrteilTarget.properties(self, node) | sasl_properties(node)
        own |= tls_properties(node, own, self.authority)
        return own | ticket_properties(node, own, self.realm)

    def env(self, node: BrokerNode) -> dict[str, str]:
        return {} if self.realm is None else self.realm.env


@dataclass(frozen=True, kw_only=True)
class SaslKafka(KafkaTarget):
    authority: Authority
    realm: Kdc | None = None

    def properties(self, node: BrokerNode) -> dict[str, str]:
        own = KafkaTarget.properties(self, node) | sasl_properties(node)
        own |= tls_properties(node, own, self.authority)
        return own | ticket_properties(node, own, self.realm)

    def env(self, node: BrokerNode) -> dict[str, str]:
        if self.realm is None:
            return {}
        return {"JDK_JAVA_OPTIONS": f"-Djava.security.krb5.conf={self.realm.config}"}


def tls_properties(
    node: BrokerNode, own: Mapping[str, str], authority: Authority
) -> dict[str, str]:
    """Listeners with TLS more: one that asks for certificates, and one that insists."""
    names = (TLS, STRICT)
    issued = authority.issue("broker", hosts=("localhost", node.address))
    more = {"listener.security.protocol.map": own[PROTOCOLS] + "".join(f",{n}:SSL" for n in names)}
    for key in ("listeners", "advertised.listeners"):
        places = (f",{name}://{node.address}:{PORTS[name]}" for name in names)
        more[key] = own[key] + "".join(places)
    for name, auth in ((TLS, "requested"), (STRICT, "required"), (SECRET, "none")):
        prefix = f"listener.name.{name.lower()}.ssl"
        more |= {
            f"{prefix}.client.auth": auth,
            f"{prefix}.keystore.type": "PEM",
            f"{prefix}.keystore.key": _line(issued.key_pem()),
            f"{prefix}.keystore.certificate.chain": _line(issued.pem),
            f"{prefix}.truststore.type": "PEM",
            f"{prefix}.truststore.certificates": _line(authority.pem),
            f"{prefix}.principal.mapping.rules": "RULE:^CN=([a-z]+),OU=people$/$1/U,DEFAULT",
        }
    return more


def _line(pem: str) -> str:
    """In one line of a properties file."""
    return pem.replace("\n", " ")


def ticket_properties(
    node: BrokerNode, own: Mapping[str, str], realm: Kdc | None
) -> dict[str, str]:
    """A listener with GSSAPI more, and a key for it, where there is a realm."""
    if realm is None:
        return {}
    principal = f"kafka/{node.address}"
    prefix = f"listener.name.{TICKETS.lower()}."
    more = {name: f"{own[name]},{TICKETS}://{node.address}:{PORTS[TICKETS]}" for name in
            ("listeners", "advertised.listeners")}  # fmt: skip
    return more | {
        "listener.security.protocol.map": f"{own[PROTOCOLS]},{TICKETS}:SASL_PLAINTEXT",
        "sasl.kerberos.service.name": "kafka",
        "sasl.kerberos.principal.to.local.rules": "RULE:[2:$1.$2@$0](.*)s/@.*//,DEFAULT",
        f"{prefix}sasl.enabled.mechanisms": "GSSAPI",
        f"{prefix}gssapi.sasl.jaas.config": (
            "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true "
            f'keyTab="{realm.keytab(principal)}" principal="{principal}@{REALM}";'
        ),
    }


class SaslSide(Side):
    """A cluster of one broker; `host` is its own address, without the clients' proxy. `realm`
    has its key for Kerberos, where MIT's KDC could be had, `authority` signed its certificate."""

    host = ""
    realm: Kdc | None = None
    authority: Authority


def place(side: Side, listener: str) -> str:
    """The address of a listener, for clients that others wrote."""
    assert isinstance(side, SaslSide)
    return f"{side.host}:{PORTS[listener]}"


def realm_of(pair: Pair) -> Kdc:
    """Raises MissingDependency where there is none."""
    assert isinstance(pair.ours, SaslSide)
    if pair.ours.realm is None:
        program("krb5kdc")
    assert pair.ours.realm is not None
    return pair.ours.realm


def _realm(folder: Path, stack: ExitStack) -> Kdc | None:
    """None where its programs are missing: the other mechanisms can be asked all the same."""
    try:
        kdc = Kdc(folder)
    except MissingDependency:
        return None
    stack.callback(kdc.close)
    return kdc


@contextlib.contextmanager
def sasl_pair(folder: Path) -> Iterator[Pair]:
    """Both sides, one broker each."""
    with ExitStack() as stack:
        spec = ClusterSpec(brokers=1, config=QUICK | LASTING)
        realm, authority = _realm(folder / "kdc", stack), Authority()
        targets: list[tuple[str, Target]] = [
            ("ours", SaslUrteil(realm=realm, authority=authority)),
            ("theirs", SaslKafka(realm=realm, authority=authority)),
        ]
        clusters = [(name, Cluster(spec, target, folder / name)) for name, target in targets]
        for _, cluster in clusters:
            stack.callback(cluster.close)
        with ThreadPoolExecutor(len(clusters)) as pool:
            list(pool.map(lambda cluster: cluster[1].start(), clusters))
        sides = []
        for name, cluster in clusters:
            side = SaslSide(name, cluster.bootstrap, cluster.plan.zookeeper_direct())
            side.host = cluster.plan.address(cluster.plan.brokers[0])
            side.realm, side.authority = realm, authority
            side.until(side.answers)
            stack.callback(side.close)
            sides.append(side)
        yield Pair(*sides)


def write_users(side: Side) -> None:
    """As ConfigCommand writes them into ZooKeeper; returned when the broker knows them."""
    with side.znodes() as zk:
        for user, password in PASSWORDS.items():
            known = {name: credential(name, password).text() for name in HASHES}
            zk.create(f"/config/users/{user}", encode_config(known), makepath=True)
            notice = encode_config_change(f"users/{user}")
            zk.create("/config/changes/config_change_", notice, sequence=True)

    def known() -> bool:
        with Talk(side) as talk:
            return bool(talk.log_in("SCRAM-SHA-512", "bob")["error_code"] == "NONE")

    side.until(known)


class Talk:
    """One connection to a listener; each answer is plain data, or CLOSED."""

    def __init__(self, side: Side, listener: str = USERS) -> None:
        assert isinstance(side, SaslSide)
        self._socket = socket.create_connection((side.host, PORTS[listener]), ANSWER_TIMEOUT_S)

    def __enter__(self) -> Talk:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def ask(self, message: Message, version: int) -> Any:
        header = RequestHeader(message.KEY, version, CORRELATION, "asker")
        frame = self.send(b"".join(encode_request(header, message)))
        if frame is None:
            return CLOSED
        return plain(decode_response(message.KEY, version, frame)[1], {})

    def bare(self, token: bytes) -> Any:
        """A mechanism's message without a header."""
        frame = self.send(len(token).to_bytes(4, "big") + token)
        return CLOSED if frame is None else frame

    def send(self, data: bytes) -> bytes | None:
        with contextlib.suppress(ConnectionError):
            self._socket.sendall(data)
        return read_frame(self._socket)

    def pour(self, data: bytes, frames: int, piece_bytes: int) -> list[bytes | None]:
        """Send without waiting for answers, a piece at a time; then so many frames."""
        for start in range(0, len(data), piece_bytes):
            self._socket.sendall(data[start : start + piece_bytes])
        return [read_frame(self._socket) for _ in range(frames)]

    def shake(self, mechanism: str, version: int = 1) -> Any:
        """The handshake; the order of mechanisms is a hash map's."""
        answer = self.ask(SaslHandshakeRequest(mechanism=mechanism), version)
        if answer != CLOSED:
            answer["mechanisms"].sort()
        return answer

    def show(self, token: bytes, version: int = 2) -> Any:
        return self.ask(SaslAuthenticateRequest(auth_bytes=token), version)

    def log_in(
        self,
        mechanism: str,
        user: str = "alice",
        password: str = "",
        version: int = 2,
        **more: str,
    ) -> Any:
        """The whole exchange; the last answer, without what is random. `more` are options of the
        client's login module."""
        self.shake(mechanism)
        options = {"username": user, "password": password or PASSWORDS.get(user, ""), **more}
        login: Login = (
            PlainLogin(options) if mechanism == "PLAIN" else ScramLogin(mechanism, options)
        )
        answer: Any = None
        challenge: bytes | None = None
        while (said := login.step(challenge)) is not None:
            answer = self.show(said, version)
            if answer == CLOSED or answer["error_code"] != "NONE":
                return answer
            challenge = answer["auth_bytes"]
        return answer | {"auth_bytes": b""}
