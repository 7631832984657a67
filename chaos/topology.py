"""The network of a cluster as a plan: addresses, names and one proxy a directed link.

A cluster takes one network 127.N.0.0/16 of the loopback. `127.N.S.D` is node D as node S sees it:
for S = D the node's own address, else an address at which the Toxiproxy beside S listens for D, at
the same ports as D's own. Every process resolves the names `b1`, `zk1`, ... by its own hosts file,
so that names lead through the links of the process that asks. Clients need no names: brokers
advertise for them the addresses at which the clients' Toxiproxy listens.
"""

from __future__ import annotations

import random
import socket
from dataclasses import dataclass

from urteil.chaos.controls import CLIENT, LabFailure, Link

LOWEST_NETWORK, HIGHEST_NETWORK = 16, 250
LOWEST_PORT, HIGHEST_PORT = 20_000, 32_000
PORTS = ("internal", "client", "zookeeper", "peer", "election", "toxiproxy")
ZOOKEEPER_INDEX, CLIENT_INDEX, TOXIPROXY_INDEX, CLAIM_INDEX = 100, 201, 250, 254
MOST_NODES = 99


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """A free network: its second octet and the ports that every node of it uses."""

    octet: int
    internal: int
    client: int
    zookeeper: int
    peer: int
    election: int
    toxiproxy: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyPlan:
    """One proxy of the Toxiproxy beside `link.src`."""

    name: str
    link: Link
    listen: str
    upstream: str


class Claim:
    """Holds a free network for as long as it is open (and the process lives)."""

    def __init__(self) -> None:
        rng = random.SystemRandom()
        for _ in range(100):
            octet = rng.randint(LOWEST_NETWORK, HIGHEST_NETWORK)
            base = rng.randrange(LOWEST_PORT, HIGHEST_PORT, len(PORTS))
            sockets = _bind_all(f"127.{octet}.0.{CLAIM_INDEX}", base)
            if sockets:
                self._sockets = sockets
                ports = {name: base + index for index, name in enumerate(PORTS)}
                self.network = Network(octet=octet, **ports)
                return
        raise LabFailure(
            "no free loopback network: the lab needs addresses in 127.0.0.0/8 "
            "(on macOS add them with `ifconfig lo0 alias`)"
        )

    def close(self) -> None:
        for one in self._sockets:
            one.close()
        self._sockets = []


# The port that every claim of one network binds, so that two can never share it.
CLAIM_PORT = 32_100


def _bind_all(address: str, base: int) -> list[socket.socket]:
    """Sockets that hold the network, or none when it or a port is taken.

    A port that some program holds on every address cannot be bound on this one either.
    """
    sockets: list[socket.socket] = []
    for port in (CLAIM_PORT, *(base + index for index in range(len(PORTS)))):
        one = socket.socket()
        sockets.append(one)
        try:
            one.bind((address, port))
        except OSError:
            for taken in sockets:
                taken.close()
            return []
    return sockets


class Plan:
    """Who sits where, and which proxies that takes."""

    def __init__(self, network: Network, *, brokers: int, zookeepers: int) -> None:
        if not 1 <= brokers <= MOST_NODES or not 1 <= zookeepers <= MOST_NODES:
            raise ValueError(f"a cluster has 1 to {MOST_NODES} brokers and ZooKeepers each")
        self.network = network
        self.brokers = tuple(f"b{number}" for number in range(1, brokers + 1))
        self.zookeepers = tuple(f"zk{number}" for number in range(1, zookeepers + 1))
        self.nodes = (*self.brokers, *self.zookeepers, CLIENT)

    def address(self, node: str) -> str:
        """The node's own address."""
        return self.seen(node, node)

    def seen(self, src: str, dst: str) -> str:
        """The address under which `src` reaches `dst`."""
        return f"127.{self.network.octet}.{_index(src)}.{_index(dst)}"

    def toxiproxy(self, node: str) -> tuple[str, int]:
        """API of the Toxiproxy beside `node`."""
        host = f"127.{self.network.octet}.{_index(node)}.{TOXIPROXY_INDEX}"
        return host, self.network.toxiproxy

    def hosts_file(self, node: str) -> str:
        """Names as `node` resolves them; the machine's own name leads to the node itself."""
        names = [f"{self.seen(node, other)} {other}" for other in (*self.brokers, *self.zookeepers)]
        own = dict.fromkeys([socket.gethostname(), socket.getfqdn(), "localhost"])
        return "\n".join([*names, *(f"{self.address(node)} {name}" for name in own)]) + "\n"

    def zookeeper_connect(self) -> str:
        """`zookeeper.connect` by names, for brokers."""
        return ",".join(f"{node}:{self.network.zookeeper}" for node in self.zookeepers)

    def zookeeper_direct(self) -> str:
        """The ensemble's own addresses, for the lab itself: past all proxies."""
        return ",".join(
            f"{self.address(node)}:{self.network.zookeeper}" for node in self.zookeepers
        )

    def bootstrap(self) -> list[str]:
        """The brokers' addresses for clients, through the clients' links."""
        return [f"{self.seen(CLIENT, node)}:{self.network.client}" for node in self.brokers]

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

    def ports(self, link: Link) -> tuple[int, ...]:
        """Ports of `link.dst` that `link.src` reaches; the first is the one that answers probes."""
        if link.dst in self.brokers:
            return (self.network.client if link.src == CLIENT else self.network.internal,)
        if link.src in self.zookeepers:
            return (self.network.zookeeper, self.network.peer, self.network.election)
        return (self.network.zookeeper,)

    def proxies(self, link: Link) -> tuple[ProxyPlan, ...]:
        """The proxies of one link, one a port."""
        listen, upstream = self.seen(link.src, link.dst), self.address(link.dst)
        return tuple(
            ProxyPlan(
                name=f"{link.src}-{link.dst}-{port}",
                link=link,
                listen=f"{listen}:{port}",
                upstream=f"{upstream}:{port}",
            )
            for port in self.ports(link)
        )


def _index(node: str) -> int:
    if node == CLIENT:
        return CLIENT_INDEX
    if node.startswith("zk"):
        return ZOOKEEPER_INDEX + int(node[2:])
    return int(node[1:])
