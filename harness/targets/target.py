"""The interface to a kind of broker, and the settings that all kinds share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from urteil.harness.runtimes.runtime import Programs
from urteil.harness.scenario import ClusterSpec

AUTHORIZER = "kafka.security.authorizer.AclAuthorizer"
USERS_PORT = 9095
TEMPORARY = "tmp"
PROTOCOL = "inter.broker.protocol.version"
CONTROLLER = "CONTROLLER"
BROKER_ROLE, CONTROLLER_ROLE = "broker", "controller"
ADVERTISED = "advertised.listeners"
_PROTOCOLS = "listener.security.protocol.map"
QUORUM_SERVERS = "controller.quorum.bootstrap.servers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """One listener of a broker: the port that it binds, and the address that it advertises."""

    name: str
    port: int
    advertised: tuple[str, int]
    protocol: str = "PLAINTEXT"


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerNode:
    """The addresses and files of a broker, or of a controller of KRaft's quorum.

    `home` is the node's folder in its own view, with `server.properties`, `hosts` and `data/`.
    `for_clients` is the advertised address: host and port of the clients' Toxiproxy. `further` are
    listeners besides those of the lab's clients and of the brokers. `metrics` is the address of the
    metrics, if the kind of broker serves any. `zookeeper_connect` is empty in a KRaft cluster,
    `quorum_voters` in a cluster with ZooKeeper. The voters are static, or the initial ones of a
    dynamic quorum (KIP-853). `roles` are those of a KRaft node.
    """

    name: str
    broker_id: int
    home: Path
    address: str
    internal_port: int
    client_port: int
    for_clients: tuple[str, int]
    metrics: tuple[str, int]
    zookeeper_connect: str
    quorum_voters: str = ""
    has_dynamic_quorum: bool = False
    controller_port: int = 0
    roles: tuple[str, ...] = (BROKER_ROLE, CONTROLLER_ROLE)
    further: tuple[Listener, ...] = ()

    @property
    def listeners(self) -> tuple[Listener, ...]:
        """All listeners, those of clients first: ZooKeeper stores them in this order, and tools
        that read it connect to the first one.

        A node that is only a controller has the controllers' listener alone.
        """
        if BROKER_ROLE not in self.roles:
            return self._controller_listeners()
        client = Listener(name="CLIENT", port=self.client_port, advertised=self.for_clients)
        internal = Listener(
            name="INTERNAL", port=self.internal_port, advertised=(self.name, self.internal_port)
        )
        secured = tuple(
            listener for listener in self.further if listener.protocol != client.protocol
        )
        plain = tuple(listener for listener in self.further if listener.protocol == client.protocol)
        return (*secured, client, *plain, internal, *self._controller_listeners())

    def _controller_listeners(self) -> tuple[Listener, ...]:
        if not self.is_voter:
            return ()
        port = self.controller_port
        return (Listener(name=CONTROLLER, port=port, advertised=(self.name, port)),)

    @property
    def is_voter(self) -> bool:
        """Whether the node is a controller of KRaft's quorum."""
        return bool(self.quorum_voters) and CONTROLLER_ROLE in self.roles

    @property
    def properties_file(self) -> Path:
        return self.home / "server.properties"

    @property
    def hosts_file(self) -> Path:
        return self.home / "hosts"

    @property
    def data(self) -> Path:
        return self.home / "data"

    @property
    def temporary(self) -> Path:
        """A folder that is empty at every start. A killed JVM leaves unpacked native libraries
        there."""
        return self.home / TEMPORARY


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """The result of a broker's check of its property file, without a start.

    `refusal` is the error for which the broker rejects the file; it is empty if the broker accepts
    it. `known` are the names of all settings of the broker, empty if they cannot be determined.
    """

    refusal: str
    known: frozenset[str]


class Target(Protocol):
    """A kind of broker.

    `waits_for_own_znode`: the broker exits if `/brokers/ids/N` of its former session still exists,
    so a restart waits for its removal. `lost_session`: the last line of the log if the session
    expired before the registration, as on a machine that stalls for seconds; the lab then starts
    the broker again. It is empty for brokers that open another session. `shows_metrics`: the broker
    serves `BrokerNode.metrics` without an agent. `has_zookeeper`: the metadata plane is ZooKeeper,
    not KRaft.
    """

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    @property
    def image(self) -> str:
        """The name of its image in `harness.runtimes.containers.images`."""
        ...

    @property
    def waits_for_own_znode(self) -> bool: ...

    @property
    def lost_session(self) -> str: ...

    @property
    def shows_metrics(self) -> bool: ...

    @property
    def has_zookeeper(self) -> bool: ...

    def knows_setting(self, setting: str) -> bool:
        """Whether a setting of brokers or topics exists. The lab leaves others out of property
        files."""
        ...

    def lowest_value(self, setting: str) -> int | None:
        """The lowest accepted value of a setting; None if the lab sets no lower one."""
        ...

    def topic_setting(self, setting: str, value: str) -> str:
        """The name of a topic's setting that accepts a value."""
        ...

    def translate_class(self, value: str) -> str:
        """The value of a setting; KRaft has another class in place of one that needs ZooKeeper."""
        ...

    def previous_release(self) -> Target:
        """The previous release, from which a rolling upgrade begins. ValueError for none."""
        ...

    def older_protocol(self) -> dict[str, str]:
        """Settings for the inter-broker protocol of the previous release; none without ZooKeeper,
        where a feature in the metadata log has the level."""
        ...

    def features(self) -> dict[str, int]:
        """The finalized level of each feature in a new cluster of this release without ZooKeeper;
        empty with ZooKeeper."""
        ...

    def argv(self, node: BrokerNode, programs: Programs, launcher: Sequence[str]) -> list[str]:
        """The command that starts a broker. `launcher` is a module of the lab, with arguments, that
        changes our broker before its start; empty for none."""
        ...

    def env(self, node: BrokerNode) -> dict[str, str]: ...

    def properties(self, node: BrokerNode) -> dict[str, str]:
        """Settings of this kind, in addition to `common_properties`."""
        ...

    def check(self, node: BrokerNode, programs: Programs) -> Check:
        """Read a node's property file as a start would."""
        ...

    def format(self, node: BrokerNode, log_dir: Path, *, former_starts: int) -> None:
        """Prepare a log directory before a start, as an operator does. Existing files stay.

        If a node that has started before has an empty directory, it lost its disk.
        """
        ...

    def files(self, node: BrokerNode) -> dict[str, str]:
        """Further files of the node's folder: name to content."""
        ...


def common_properties(node: BrokerNode) -> dict[str, str]:
    """Settings of every target: its listeners, and timeouts low enough for short scenarios."""
    bound = [f"{listener.name}://{node.address}:{listener.port}" for listener in node.listeners]
    return {
        **_metadata_properties(node),
        "listeners": ",".join(bound),
        ADVERTISED: advertised(node.listeners),
        _PROTOCOLS: ",".join(f"{name}:{protocol}" for name, protocol in _protocols(node).items()),
        **({"inter.broker.listener.name": "INTERNAL"} if BROKER_ROLE in node.roles else {}),
        "log.dirs": str(node.data),
        "replica.lag.time.max.ms": "3000",
        "replica.fetch.wait.max.ms": "250",
        "replica.fetch.backoff.ms": "250",
        "replica.socket.timeout.ms": "3000",
        "controller.socket.timeout.ms": "3000",
        "controlled.shutdown.max.retries": "2",
        "controlled.shutdown.retry.backoff.ms": "500",
        "group.initial.rebalance.delay.ms": "300",
        "group.min.session.timeout.ms": "1000",
        "offsets.topic.num.partitions": "5",
        "offsets.topic.replication.factor": "3",
        "transaction.state.log.num.partitions": "5",
        "transaction.state.log.replication.factor": "3",
        "transaction.state.log.min.isr": "2",
        "num.network.threads": "2",
        "num.io.threads": "4",
        "min.insync.replicas": "2",
        "default.replication.factor": "3",
        "num.partitions": "3",
        "unclean.leader.election.enable": "false",
        "auto.create.topics.enable": "true",
        "auto.leader.rebalance.enable": "false",
    }


def advertised(listeners: Iterable[Listener]) -> str:
    """The value of `advertised.listeners`; empty without listeners."""
    return ",".join(
        "{}://{}:{}".format(listener.name, *listener.advertised) for listener in listeners
    )


def _protocols(node: BrokerNode) -> dict[str, str]:
    """The security protocol of each listener that the node has or connects to."""
    protocols = {listener.name: listener.protocol for listener in node.listeners}
    return protocols | ({CONTROLLER: "PLAINTEXT"} if node.quorum_voters else {})


def _metadata_properties(node: BrokerNode) -> dict[str, str]:
    """A node's id and the address of its metadata plane, with timeouts of about 3 s."""
    if node.zookeeper_connect:
        return {
            "broker.id": str(node.broker_id),
            "zookeeper.connect": node.zookeeper_connect,
            "zookeeper.session.timeout.ms": "3000",
            "zookeeper.connection.timeout.ms": "15000",
        }
    return {
        "process.roles": ",".join(node.roles),
        "node.id": str(node.broker_id),
        **_quorum_properties(node),
        "controller.listener.names": CONTROLLER,
        "controller.quorum.fetch.timeout.ms": "2000",
        "controller.quorum.election.timeout.ms": "1000",
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "500",
    }


def _quorum_properties(node: BrokerNode) -> dict[str, str]:
    """The property file lists static voters; a dynamic quorum stores them in its metadata log
    (KIP-853)."""
    if not node.has_dynamic_quorum:
        return {"controller.quorum.voters": node.quorum_voters}
    addresses = [voter.partition("@")[2] for voter in node.quorum_voters.split(",")]
    return {QUORUM_SERVERS: ",".join(addresses)}


def required_settings(spec: ClusterSpec) -> Iterator[str]:
    """The settings and classes without which a cluster lacks what `spec` requires."""
    yield from spec.config
    yield from spec.config.values()
    if spec.racks:
        yield "replica.selector.class"
    if spec.users:
        yield AUTHORIZER


def user_properties(node: BrokerNode) -> dict[str, str]:
    """ACLs, with the lab's clients and the brokers as super users, and a listener for other
    users."""
    common = common_properties(node)
    listener = f",USERS://{node.address}:{USERS_PORT}"
    scram = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    return {
        "listeners": common["listeners"] + listener,
        ADVERTISED: common[ADVERTISED] + listener,
        "listener.security.protocol.map": f"{common[_PROTOCOLS]},USERS:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
        "listener.name.users.scram-sha-256.sasl.jaas.config": scram,
        "authorizer.class.name": AUTHORIZER,
        "super.users": "User:ANONYMOUS;User:root",
    }


def replication_properties(brokers: int) -> dict[str, str]:
    """Replication that fits a cluster of fewer than three brokers."""
    if brokers >= 3:
        return {}
    return {
        "offsets.topic.replication.factor": str(brokers),
        "transaction.state.log.replication.factor": str(brokers),
        "transaction.state.log.min.isr": "1",
        "min.insync.replicas": "1",
        "default.replication.factor": str(brokers),
    }


def render(properties: Mapping[str, str]) -> str:
    """A Java property file in ASCII: Java reads Latin-1, with escapes for other characters."""
    return "".join(f"{name}={_escape(value)}\n" for name, value in properties.items())


def _escape(value: str) -> str:
    """Backslashes doubled, and characters other than printable ASCII as UTF-16 escapes."""

    def units(letter: re.Match[str]) -> str:
        pairs = letter[0].encode("utf-16-be").hex(" ", 2).split()
        return "".join(f"\\u{pair}" for pair in pairs)

    return re.sub(r"[^\x20-\x7e]", units, value.replace("\\", "\\\\"))
