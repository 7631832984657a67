"""The network of a cluster as a plan: addresses, names and one proxy a directed link.

Every node has an address of its own, and one for every other node at which the Toxiproxy beside it
listens for that node, at the same ports as the node's own. Every process resolves the names `b1`,
`zk1`, ... by its own hosts file, so that names lead through the links of the process that asks.
Clients need no names: brokers advertise for them where the clients' Toxiproxy listens.

What the lab itself asks (a node past all proxies, a node through a link, a Toxiproxy) may be
reached elsewhere than the nodes reach it: the methods that say so answer with host and port.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from urteil.chaos.observations import CLIENT, Link

ZOOKEEPER_INDEX, CLIENT_INDEX = 100, 201
MOST_NODES = 99
LOCALHOST = "127.0.0.1"

Address = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """The ports that every node of a cluster uses, `toxiproxy` that of the API beside it.

    `metrics` is where a broker that can shows its metrics by HTTP; no proxy leads there. `users`
    and `network` are a broker's further listeners for clients, where a `Layout` has them.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where people reach a cluster that stands for them.

    Broker ids count from `first_broker_id`. With `port`, clients on this machine reach the first
    broker at that port of 127.0.0.1, and the other brokers, the ZooKeepers and the brokers' metrics
    at the ports after it. With `secured`, brokers have a listener for users beside the lab's own.
    With `network`, they have one for other containers, on a container network of that name.
    """

    first_broker_id: int = 1
    port: int | None = None
    secured: bool = False
    network: str = ""


USUAL = Layout()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyPlan:
    """One proxy of a Toxiproxy; `link` is None for one that no fault may touch."""

    name: str
    link: Link | None
    listen: str
    upstream: str


class Plan(ABC):
    """Who sits where, and which proxies that takes."""

    def __init__(
        self, ports: Ports, *, brokers: int, zookeepers: int, layout: Layout = USUAL
    ) -> None:
        if not 1 <= brokers <= MOST_NODES or not 1 <= zookeepers <= MOST_NODES:
            raise ValueError(f"a cluster has 1 to {MOST_NODES} brokers and ZooKeepers each")
        self.ports = ports
        self.layout = layout
        first = layout.first_broker_id
        self.brokers = tuple(f"b{number}" for number in range(first, first + brokers))
        self.zookeepers = tuple(f"zk{number}" for number in range(1, zookeepers + 1))
        self.nodes = (*self.brokers, *self.zookeepers, CLIENT)

    @abstractmethod
    def address(self, node: str) -> str:
        """The node's own address."""

    @abstractmethod
    def seen(self, src: str, dst: str) -> str:
        """The address under which `src` reaches `dst`."""

    @abstractmethod
    def toxiproxy_listens(self, node: str) -> Address:
        """Where the API of the Toxiproxy beside `node` listens."""

    @abstractmethod
    def toxiproxy(self, node: str) -> Address:
        """Where the lab reaches that API."""

    @abstractmethod
    def direct(self, node: str) -> Address:
        """Where the lab asks a node itself: a broker's client listener, a ZooKeeper's port."""

    @abstractmethod
    def through(self, link: Link) -> Address:
        """Where the lab asks `link.dst` through the link, as `link.src` does."""

    @abstractmethod
    def reached(self, broker: str, port: int) -> Address:
        """Where clients reach a port of a broker, which advertises it: through their links."""

    def for_clients(self, broker: str) -> Address:
        """Where the lab's own clients reach a broker."""
        return self.reached(broker, self.ports.client)

    @property
    def client_ports(self) -> tuple[int, ...]:
        """Ports of a broker that clients reach; the first is that of the lab's own clients."""
        further = (
            (self.ports.users, self.layout.secured),
            (self.ports.network, bool(self.layout.network)),
        )
        return (self.ports.client, *(port for port, is_there in further if is_there))

    @property
    def users_port(self) -> int:
        """The port of a broker for the people's clients on this machine."""
        return self.ports.users if self.layout.secured else self.ports.client

    def fixed_ports(self) -> dict[tuple[str, int], int]:
        """The layout's ports on this machine, each for a node and a port of it; empty without."""
        if self.layout.port is None:
            return {}
        inside = [
            *((broker, self.users_port) for broker in self.brokers),
            *((zookeeper, self.ports.zookeeper) for zookeeper in self.zookeepers),
            *((broker, self.ports.metrics) for broker in self.brokers),
        ]
        return {one: self.layout.port + at for at, one in enumerate(inside)}

    def index(self, node: str) -> int:
        """A number of the node's own, 1 to 201: brokers from 1, ZooKeepers from 101."""
        if node == CLIENT:
            return CLIENT_INDEX
        if node.startswith("zk"):
            return ZOOKEEPER_INDEX + int(node[2:])
        return int(node[1:]) - self.layout.first_broker_id + 1

    def metrics_listen(self, broker: str) -> Address:
        """Where a broker shows its metrics."""
        return self.address(broker), self.ports.metrics

    def metrics(self, broker: str) -> Address:
        """Where the lab, and people, reach them."""
        return self.metrics_listen(broker)

    def bootstrap(self) -> list[str]:
        """The brokers' addresses for the lab's own clients."""
        return ["{}:{}".format(*self.for_clients(node)) for node in self.brokers]

    def bootstrap_at(self, port: int) -> list[str]:
        """The brokers' addresses for the clients of one of `client_ports`."""
        return ["{}:{}".format(*self.reached(node, port)) for node in self.brokers]

    def zookeeper_for_users(self, zookeeper: str) -> Address:
        """Where people on this machine reach a ZooKeeper, past all proxies that a fault touches."""
        return self.direct(zookeeper)

    def hosts_file(self, node: str) -> str:
        """Names as `node` resolves them; the machine's own name leads to the node itself."""
        names = [f"{self.seen(node, other)} {other}" for other in (*self.brokers, *self.zookeepers)]
        own = dict.fromkeys(self.own_names())
        return "\n".join([*names, *(f"{self.address(node)} {name}" for name in own)]) + "\n"

    def own_names(self) -> list[str]:
        """What the machine that a node runs on is called there."""
        return ["localhost"]

    def zookeeper_connect(self) -> str:
        """`zookeeper.connect` by names, for brokers."""
        return ",".join(f"{node}:{self.ports.zookeeper}" for node in self.zookeepers)

    def zookeeper_direct(self) -> str:
        """The ensemble for the lab itself: past all proxies."""
        return ",".join("{}:{}".format(*self.direct(node)) for node in self.zookeepers)

    def service_port(self, node: str) -> int:
        """The port at which a node answers the lab's questions."""
        return self.ports.client if node in self.brokers else self.ports.zookeeper

    def links(self) -> tuple[Link, ...]:
        """Every directed link, in a fixed order."""
        sources = {
            **{node: (*self.brokers, *self.zookeepers) for node in self.brokers},
            **{node: self.zookeepers for node in self.zookeepers},
            CLIENT: self.brokers,
        }
        return tuple(
            Link(src, dst) for src, targets in sources.items() for dst in targets if src != dst
        )

    def ports_of(self, link: Link) -> tuple[int, ...]:
        """Ports of `link.dst` that `link.src` reaches; the first is the one that answers probes."""
        if link.dst in self.brokers:
            return self.client_ports if link.src == CLIENT else (self.ports.internal,)
        if link.src in self.zookeepers:
            return (self.ports.zookeeper, self.ports.peer, self.ports.election)
        return (self.ports.zookeeper,)

    def proxies(self, link: Link) -> tuple[ProxyPlan, ...]:
        """The proxies of one link, one a port."""
        return tuple(
            ProxyPlan(
                name=f"{link.src}-{link.dst}-{port}",
                link=link,
                listen=self._listen(link, port),
                upstream=f"{self.address(link.dst)}:{port}",
            )
            for port in self.ports_of(link)
        )

    def doors(self, node: str) -> tuple[ProxyPlan, ...]:
        """Proxies of the Toxiproxy beside `node` by which the lab comes in, if it must."""
        return ()

    def _listen(self, link: Link, port: int) -> str:
        return f"{self.seen(link.src, link.dst)}:{port}"
