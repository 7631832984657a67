"""The planned network of a cluster: addresses, names, and one proxy for each directed link.

Every node has an address of its own, and one for every other node, at which the Toxiproxy beside it
listens in that node's place, at the same ports. Every process resolves the names `b1`, `zk1`, ...
by its own hosts file, so that names lead through its own links. Clients need no names: brokers
advertise the addresses of the clients' Toxiproxy.

The lab may reach a node, a link or a Toxiproxy at another address than the nodes do. The methods
for the lab return host and port.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from urteil.chaos.observations import CLIENT, WAN, Link

EAST, WEST = "east", "west"
"""The names of the clusters of a run: of the first, or only, one, and of the second."""
METADATA_INDEX, CLIENT_INDEX, WAN_INDEX = 100, 201, 202
CONTROLLER_IDS = 1000
"""The node id of the controller q1 is this and 1; brokers have lower ids."""
MOST_NODES = 99
LOCALHOST = "127.0.0.1"

Address = tuple[str, int]


def node_id(node: str) -> int:
    """The id of a Kafka node by its name: 2 of `b2`, 1001 of `q1`."""
    number = int(node[1:])
    return number + CONTROLLER_IDS if node.startswith("q") else number


def node_name(number: int) -> str:
    """The name of a Kafka node by its id."""
    return f"b{number}" if number <= CONTROLLER_IDS else f"q{number - CONTROLLER_IDS}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """The ports of every node of a cluster.

    `toxiproxy` is the API of the Toxiproxy beside a node. `metrics` is a broker's HTTP port for
    metrics, without a proxy. `users`, `network` and `wan` are further listeners of brokers, if the
    `Layout` has them. `controller` is the port of a controller of KRaft's quorum.
    """

    internal: int
    client: int
    zookeeper: int
    peer: int
    election: int
    toxiproxy: int
    metrics: int
    users: int = 0
    network: int = 0
    wan: int = 0
    controller: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Options of a cluster's network for its users.

    Broker ids count from `first_broker_id`, metadata nodes from `first_zookeeper_id`. With
    `port`, clients on this machine reach the first broker at that port of 127.0.0.1, and the other
    brokers, the ZooKeeper servers and the brokers' metrics at the next ports. With `secured`,
    brokers have a listener for users beside the lab's own. With `network`, they have a listener for
    other containers on that container network. With `encrypted`, both use TLS. With `wan`, brokers
    have a listener for applications at the other cluster of the run, with links of its own.
    """

    first_broker_id: int = 1
    first_zookeeper_id: int = 1
    port: int | None = None
    secured: bool = False
    encrypted: bool = False
    network: str = ""
    wan: bool = False


USUAL = Layout()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyPlan:
    """One proxy of a Toxiproxy. `link` is None if no fault may use it.

    With `reads_frames` it follows Kafka's frames, and rules may act on them (`chaos/proxy`).
    """

    name: str
    link: Link | None
    listen: str
    upstream: str
    reads_frames: bool = False

    def config(self, *, enabled: bool = True) -> dict[str, str | bool]:
        """The proxy in Toxiproxy's configuration file."""
        return {
            "name": self.name,
            "listen": self.listen,
            "upstream": self.upstream,
            "enabled": enabled,
            "kafka": self.reads_frames,
        }


class Plan(ABC):
    """The addresses of a cluster's nodes, and the proxies between them.

    Without ZooKeeper servers, the `controllers` are the voters of KRaft's quorum; without these,
    the brokers.
    """

    def __init__(
        self,
        ports: Ports,
        *,
        brokers: int,
        zookeepers: int,
        controllers: int = 0,
        layout: Layout = USUAL,
    ) -> None:
        if not 1 <= brokers <= MOST_NODES or not 0 <= zookeepers <= MOST_NODES:
            raise ValueError(
                f"a cluster has 1 to {MOST_NODES} brokers and at most as many ZooKeepers"
            )
        self.ports = ports
        self.layout = layout
        first = layout.first_broker_id
        self.brokers = tuple(f"b{number}" for number in range(first, first + brokers))
        first = layout.first_zookeeper_id
        self.zookeepers = tuple(f"zk{number}" for number in range(first, first + zookeepers))
        self.controllers = tuple(f"q{number}" for number in range(first, first + controllers))
        own = (*self.brokers, *self.metadata_nodes)
        self.nodes = (*own, CLIENT, *((WAN,) if layout.wan else ()))

    @property
    def metadata_nodes(self) -> tuple[str, ...]:
        """The nodes that are not brokers: ZooKeeper servers, or controllers of their own."""
        return (*self.zookeepers, *self.controllers)

    @property
    def voters(self) -> tuple[str, ...]:
        """The nodes of KRaft's quorum; none with ZooKeeper."""
        return () if self.zookeepers else self.controllers or self.brokers

    def ports_at(self, node: str) -> Ports:
        """The ports of a node. By default all nodes have the same."""
        return self.ports

    @abstractmethod
    def address(self, node: str) -> str:
        """The node's own address."""

    @abstractmethod
    def address_from(self, src: str, dst: str) -> str:
        """The address at which `src` reaches `dst`."""

    @abstractmethod
    def toxiproxy_listens(self, node: str) -> Address:
        """The address of the API of the Toxiproxy beside `node`."""

    def toxiproxy(self, node: str) -> Address:
        """The address of that API for the lab; by default the one for the nodes."""
        return self.toxiproxy_listens(node)

    def direct_address(self, node: str) -> Address:
        """The address of a node for the lab, without a proxy: the client listener of a broker, the
        port of a metadata node. By default the one for the nodes."""
        return self.address(node), self.service_port(node)

    def link_address(self, link: Link) -> Address:
        """The address of `link.dst` for the lab, through the link."""
        if link.src == CLIENT:
            return self.lab_client_address(link.dst)
        return self._entry_address(link)

    def _entry_address(self, link: Link) -> Address:
        """The address at which the lab enters a link between nodes; by default that of the
        nodes."""
        return self.address_from(link.src, link.dst), self.ports_of(link)[0]

    @abstractmethod
    def client_address(self, broker: str, port: int) -> Address:
        """The advertised address of a broker's port for clients, through their links."""

    def lab_client_address(self, broker: str) -> Address:
        """The address of a broker for the lab's own clients."""
        return self.client_address(broker, self.ports_at(broker).client)

    @property
    def client_ports(self) -> tuple[int, ...]:
        """The ports of a broker for clients; the first is for the lab's own clients."""
        return self._client_ports(self.ports)

    def _client_ports(self, ports: Ports) -> tuple[int, ...]:
        further = (
            (ports.users, self.layout.secured),
            (ports.network, bool(self.layout.network)),
        )
        return (ports.client, *(port for port, exists in further if exists))

    def is_encrypted(self, port: int) -> bool:
        """Whether clients use TLS at a broker's port."""
        return self.layout.encrypted and port in self.client_ports[1:]

    @property
    def users_port(self) -> int:
        """The port of a broker for users' clients on this machine."""
        return self.ports.users if self.layout.secured else self.ports.client

    def fixed_ports(self) -> dict[tuple[str, int], int]:
        """The fixed ports on this machine by node and port; empty without `Layout.port`."""
        if self.layout.port is None:
            return {}
        inside = [
            *((broker, self.users_port) for broker in self.brokers),
            *((zookeeper, self.ports.zookeeper) for zookeeper in self.zookeepers),
            *((broker, self.ports.metrics) for broker in self.brokers),
        ]
        return {node: self.layout.port + at for at, node in enumerate(inside)}

    def index(self, node: str) -> int:
        """The number of a node, 1 to 202: brokers from 1, metadata nodes from 101."""
        if node in (CLIENT, WAN):
            return CLIENT_INDEX if node == CLIENT else WAN_INDEX
        if node.startswith(("zk", "q")):
            number = int(node.lstrip("zkq"))
            return METADATA_INDEX + number - self.layout.first_zookeeper_id + 1
        return int(node[1:]) - self.layout.first_broker_id + 1

    def metrics_listen(self, broker: str) -> Address:
        """The address at which a broker serves metrics."""
        return self.address(broker), self.ports_at(broker).metrics

    def metrics(self, broker: str) -> Address:
        """The address of a broker's metrics for the lab and for users."""
        return self.metrics_listen(broker)

    def bootstrap(self) -> list[str]:
        """The brokers' addresses for the lab's own clients."""
        return ["{}:{}".format(*self.lab_client_address(node)) for node in self.brokers]

    def users_bootstrap(self) -> list[str]:
        """The brokers' addresses for users' clients on this machine."""
        return self.bootstrap_at(self.ports.users) if self.layout.secured else self.bootstrap()

    def bootstrap_at(self, port: int) -> list[str]:
        """The brokers' addresses for the clients of one of `client_ports`."""
        return ["{}:{}".format(*self.client_address(node, port)) for node in self.brokers]

    def wan_address(self, broker: str) -> Address:
        """The advertised address of a broker for applications at the other cluster."""
        return self.address_from(WAN, broker), self.ports.wan

    def wan_bootstrap(self) -> list[str]:
        """The brokers' addresses for applications at the other cluster; none without `wan`."""
        brokers = self.brokers if self.layout.wan else ()
        return ["{}:{}".format(*self.wan_address(node)) for node in brokers]

    def zookeeper_for_users(self, zookeeper: str) -> Address:
        """The address of a ZooKeeper server for users, which no fault affects."""
        return self.direct_address(zookeeper)

    def hosts_file(self, node: str) -> str:
        """The hosts file of `node`; the names of its own machine resolve to the node itself."""
        names = [
            f"{self.address_from(node, other)} {other}"
            for other in (*self.brokers, *self.metadata_nodes)
        ]
        own = dict.fromkeys(self.own_names(node))
        return "\n".join([*names, *(f"{self.address(node)} {name}" for name in own)]) + "\n"

    def host_of(self, node: str) -> str:
        """The host of the inventory on which a node runs. Empty without one."""
        return ""

    def lab_time(self, node: str, at_ns: int) -> tuple[int, int]:
        """The lab's monotonic clock at the time `at_ns` of the clock of a node's machine, and the
        bound of its error in ns."""
        return at_ns, 0

    def own_names(self, node: str) -> list[str]:
        """The names of the machine on which the node runs."""
        return ["localhost"]

    def zookeeper_connect(self) -> str:
        """`zookeeper.connect` by names, for brokers."""
        return ",".join(f"{node}:{self.ports_at(node).zookeeper}" for node in self.zookeepers)

    def quorum_voters(self) -> str:
        """`controller.quorum.voters` by names; empty with ZooKeeper."""
        return ",".join(
            f"{node_id(node)}@{node}:{self.ports_at(node).controller}" for node in self.voters
        )

    def quorum_address(self, node: str) -> Address:
        """The quorum's listener of a controller, without a proxy."""
        return self.address(node), self.ports_at(node).controller

    def zookeeper_direct(self) -> str:
        """The addresses of the ensemble for the lab, without proxies."""
        return ",".join("{}:{}".format(*self.direct_address(node)) for node in self.zookeepers)

    def service_port(self, node: str) -> int:
        """The port at which a node answers requests of the lab."""
        ports = self.ports_at(node)
        if node in self.brokers:
            return ports.client
        return ports.controller if node in self.controllers else ports.zookeeper

    def links(self) -> tuple[Link, ...]:
        """Every directed link, in a fixed order."""
        sources = {
            **{node: (*self.brokers, *self.metadata_nodes) for node in self.brokers},
            **{node: self.metadata_nodes for node in self.metadata_nodes},
            **{node: self.brokers for node in (CLIENT, WAN) if node in self.nodes},
        }
        return tuple(
            Link(src, dst) for src, targets in sources.items() for dst in targets if src != dst
        )

    def ports_of(self, link: Link) -> tuple[int, ...]:
        """The ports of `link.dst` for `link.src`; probes use the first."""
        ports = self.ports_at(link.dst)
        if link.dst in self.brokers:
            further = {CLIENT: self._client_ports(ports), WAN: (ports.wan,)}
            controller = (ports.controller,) if link.dst in self.voters else ()
            return further.get(link.src, (ports.internal, *controller))
        if link.dst in self.controllers:
            return (ports.controller,)
        if link.src in self.zookeepers:
            return (ports.zookeeper, ports.peer, ports.election)
        return (ports.zookeeper,)

    def proxies(self, link: Link) -> tuple[ProxyPlan, ...]:
        """The proxies of one link, one for each port."""
        return tuple(
            ProxyPlan(
                name=f"{link.src}-{link.dst}-{port}",
                link=link,
                listen=self._listen(link, port),
                upstream=f"{self.address(link.dst)}:{port}",
                reads_frames=link.dst not in self.zookeepers and not self.is_encrypted(port),
            )
            for port in self.ports_of(link)
        )

    def entry_proxies(self, node: str) -> tuple[ProxyPlan, ...]:
        """Proxies of the Toxiproxy beside `node` by which the lab enters the network, if needed."""
        return ()

    def _listen(self, link: Link, port: int) -> str:
        return f"{self.address_from(link.src, link.dst)}:{port}"
