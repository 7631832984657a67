"""The request of a standing cluster, and its state file."""

from __future__ import annotations

import msgspec

from urteil.chaos.faults.base.fault import KRAFT, target_kind
from urteil.chaos.topology import Layout
from urteil.harness.cluster.access import Access, Security
from urteil.harness.scenario import DYNAMIC, STATIC, ClusterSpec, Quorum
from urteil.harness.standing.ports import port_problem, range_problem

HIGHEST_ID = 1000
"""Apache Kafka's `reserved.broker.max.id`: higher ones are those that it generates."""


class StandingRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `urteil cluster up`. `hosts` is the inventory of the runtime ssh."""

    name: str = "default"
    brokers: int = 3
    zookeepers: int = 1
    controllers: int = 0
    quorum: Quorum = STATIC
    target: str = "urteil"
    runtime: str = "process"
    hosts: str = ""
    port: int | None = None
    settings: dict[str, str] = {}
    first_broker_id: int = 1
    racks: tuple[str, ...] = ()
    tls: bool = False
    sasl: str = ""
    acl: bool = False

    @property
    def spec(self) -> ClusterSpec:
        return ClusterSpec(
            brokers=self.brokers,
            zookeepers=self.zookeepers,
            controllers=self.controllers,
            quorum=self.quorum,
            config=dict(self.settings),
        )

    @property
    def has_zookeeper(self) -> bool:
        return target_kind(self.target) != KRAFT

    @property
    def security(self) -> Security:
        return Security(tls=self.tls, sasl=self.sasl, acl=self.acl)

    @property
    def network(self) -> str:
        """The container network for other programs. Empty where nodes are processes."""
        return f"urteil-{self.name}" if self.runtime == "docker" else ""

    @property
    def port_count(self) -> int:
        """The number of ports of a cluster with `port`: brokers, ZooKeeper servers, metrics."""
        return 2 * self.brokers + (self.zookeepers if self.has_zookeeper else 0)

    def problem(self) -> str:
        """Why this cluster is impossible, with the remedy. Empty when it is possible."""
        last = self.first_broker_id + self.brokers - 1
        if last > HIGHEST_ID:
            last_first = HIGHEST_ID - self.brokers + 1
            return (
                f"--first-broker-id {self.first_broker_id} with {self.brokers} brokers ends at "
                f"{last}, and ids end at {HIGHEST_ID}: choose at most {last_first}"
            )
        if len(self.racks) > self.brokers:
            return (
                f"--racks names {len(self.racks)} racks for {self.brokers} brokers: name at most "
                "one a broker, or start more --brokers"
            )
        if not all(self.racks):
            return f"--racks {','.join(self.racks)} has an empty name: write --racks a,b,c"
        if problem := self._kraft_problem() or self._hosts_problem():
            return problem
        out_of_range = "" if self.port is None else range_problem(self.port, self.port_count)
        return out_of_range or self.security.problem()

    def _kraft_problem(self) -> str:
        """Why a cluster of KRaft is impossible so. Empty for one with ZooKeeper."""
        if self.has_zookeeper:
            return ""
        if self.quorum == DYNAMIC and self.runtime == "ssh":
            return "--quorum dynamic runs on this machine: --runtime process or docker"
        if self.acl or self.sasl == "scram":
            option = "--acl" if self.acl else "--sasl scram"
            return f"{option} needs ZooKeeper: take --target kafka"
        return ""

    def _hosts_problem(self) -> str:
        """Why hosts cannot run this cluster. Empty where they can, and for another runtime."""
        if self.runtime != "ssh":
            return ""
        rejected = {
            "--port": self.port is not None,
            "--first-broker-id": self.first_broker_id != 1,
            "--tls": self.tls,
            "--sasl": bool(self.sasl),
            "--acl": self.acl,
        }
        for option in (option for option, is_given in rejected.items() if is_given):
            return f"{option} needs nodes on this machine: leave out {option} or --runtime ssh"
        return ""

    def port_problem(self) -> str:
        """Why its ports cannot be used. Empty when they can."""
        return "" if self.port is None else port_problem(self.port, self.port_count)

    def access(self) -> Access:
        layout = Layout(
            first_broker_id=self.first_broker_id,
            port=self.port,
            secured=bool(self.security),
            encrypted=self.security.tls,
            network=self.network,
        )
        return Access(layout=layout, racks=self.racks, security=self.security)


class User(msgspec.Struct, frozen=True, kw_only=True):
    """A user of the users' listener.

    `files` are client configurations by kind of client, `network_files` those for containers on the
    cluster's network.
    """

    name: str
    password: str = ""
    rights: str = "all"
    files: dict[str, str] = {}
    network_files: dict[str, str] = {}


class StandingCluster(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a standing cluster. `keeper_began` guards against reused pids.

    `bootstrap` and `zookeeper` are for users' programs, `lab_bootstrap` is the listener of the
    lab's own clients. `metadata_logs` are those of KRaft's voters. `defaults` are
    effective settings of the brokers. `hosts` are those of the nodes, with the runtime ssh. `dead`
    are the nodes that do not run.
    """

    name: str
    target: str
    runtime: str = "process"
    brokers: int
    zookeepers: int
    controllers: int = 0
    directory: str
    keeper: int
    keeper_began: float
    bootstrap: list[str] = []
    lab_bootstrap: list[str] = []
    metrics: list[str] = []
    zookeeper: str = ""
    ports: list[int] = []
    racks: dict[str, str] = {}
    defaults: dict[str, str] = {}
    protocol: str = "PLAINTEXT"
    mechanisms: list[str] = []
    users: list[User] = []
    clients: str = ""
    ca: str = ""
    network: str = ""
    network_bootstrap: list[str] = []
    network_zookeeper: str = ""
    metadata_logs: dict[str, str] = {}
    pids: dict[str, int] = {}
    hosts: dict[str, str] = {}
    dead: list[str] = []
    fault_port: int = 0
    fault_key: str = ""

    @property
    def bootstrap_servers(self) -> str:
        """The form for clients: `host:port,host:port`."""
        return ",".join(self.bootstrap)
