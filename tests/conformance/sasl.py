"""Both kinds of broker with listeners that ask who comes, and talk to these in raw frames."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.conformance.pair import QUICK, Pair
from tests.conformance.plain import plain
from tests.conformance.side import CLOSED, CORRELATION, Side, read_frame
from urteil.broker.security.exchange import Login
from urteil.broker.security.plain import PlainLogin
from urteil.broker.security.scram import HASHES, ScramLogin, credential
from urteil.broker.wire.framing import RequestHeader, decode_response, encode_request
from urteil.broker.wire.messages import SaslAuthenticateRequest, SaslHandshakeRequest
from urteil.broker.wire.schema import Message
from urteil.broker.zookeeper.znodes import encode_config, encode_config_change
from urteil.harness.cluster import Cluster
from urteil.harness.scenario import ClusterSpec
from urteil.harness.targets import KafkaTarget, Target, UrteilTarget
from urteil.harness.targets.base import BrokerNode, common_properties

USERS, TIMED = "USERS", "TIMED"
PORTS = {USERS: 9644, TIMED: 9645}
SESSION_MS = 4000
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
MASTER_KEY = "the brokers' own secret"
PASSWORDS = {"alice": "alice-Secret", "bob": "bob-Secret"}

_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
_KNOWN = " ".join(f'user_{name}="{password}"' for name, password in PASSWORDS.items())


def sasl_properties(node: BrokerNode) -> dict[str, str]:
    """Two listeners more, one of them with sessions that end."""
    common = common_properties(node)
    more = "".join(f",{name}://{node.address}:{port}" for name, port in PORTS.items())
    protocols = "".join(f",{name}:SASL_PLAINTEXT" for name in PORTS)
    found = {
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
    for name in PORTS:
        prefix = f"listener.name.{name.lower()}."
        found[f"{prefix}plain.sasl.jaas.config"] = f"{_PLAIN} {_KNOWN};"
        for mechanism in MECHANISMS[1:]:
            found[f"{prefix}{mechanism.lower()}.sasl.jaas.config"] = f"{_SCRAM};"
    return found


class SaslUrteil(UrteilTarget):
    def properties(self, node: BrokerNode) -> dict[str, str]:
        return UrteilTarget.properties(self, node) | sasl_properties(node)


class SaslKafka(KafkaTarget):
    def properties(self, node: BrokerNode) -> dict[str, str]:
        return KafkaTarget.properties(self, node) | sasl_properties(node)


class SaslSide(Side):
    """A cluster of one broker; `host` is its own address, without the clients' proxy."""

    host = ""


@contextlib.contextmanager
def sasl_pair(folder: Path) -> Iterator[Pair]:
    """Both sides, one broker each."""
    with ExitStack() as stack:
        spec = ClusterSpec(brokers=1, config=QUICK)
        targets: list[tuple[str, Target]] = [("ours", SaslUrteil()), ("theirs", SaslKafka())]
        clusters = [(name, Cluster(spec, one, folder / name)) for name, one in targets]
        for _, cluster in clusters:
            stack.callback(cluster.close)
        with ThreadPoolExecutor(len(clusters)) as pool:
            list(pool.map(lambda one: one[1].start(), clusters))
        sides = []
        for name, cluster in clusters:
            side = SaslSide(name, cluster.bootstrap, cluster.plan.zookeeper_direct())
            side.host = cluster.plan.address(cluster.plan.brokers[0])
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
        self._socket = socket.create_connection((side.host, PORTS[listener]), timeout=10)

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
