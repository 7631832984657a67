"""The network plan of a cluster over several hosts.

A node binds its host's address, at ports of its own: nodes of one host share that address. On the
host of node S, `127.N.S.D` is node D as S sees it, where the Toxiproxy beside S listens for D. The
clients' Toxiproxy runs beside the lab, or on the first host for clients. Then the lab and the other
hosts for clients forward the same addresses to it. The lab reaches nodes and Toxiproxies at the
addresses of their hosts, and probes a link by an entry, a proxy that no fault touches.

A run has a block of ports on every host, and a loopback network of the same number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from urteil.chaos.loopback import (
    HIGHEST_PORT,
    LOWEST_NETWORK,
    LOWEST_PORT,
    PORTS,
    LoopbackPlan,
)
from urteil.chaos.observations import CLIENT, LabFailure, Link
from urteil.chaos.topology import Address, Plan, Ports, ProxyPlan
from urteil.harness.runtimes.hosts.host_clock import HostClock

MOST_NODES = 15
"""The nodes for which a block has ports, and ports of their entries."""
NODE_PORTS = len(PORTS) + MOST_NODES


@dataclass(frozen=True, slots=True)
class Block:
    """Ports and a loopback network, the same on every host. The first port only claims the rest."""

    number: int

    @property
    def octet(self) -> int:
        return LOWEST_NETWORK + self.number

    @property
    def first_port(self) -> int:
        return LOWEST_PORT + self.number * self.size

    @property
    def size(self) -> int:
        return 1 + MOST_NODES * NODE_PORTS

    def node_port(self, ordinal: int) -> int:
        """The first port of a node, by its position among the nodes."""
        return self.first_port + 1 + ordinal * NODE_PORTS


BLOCKS = tuple(Block(number) for number in range((HIGHEST_PORT - LOWEST_PORT) // Block(0).size))


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The host of a node. `host` is the inventory's name, `host_name` the machine's own one.
    `clock` is None if the host has the lab's monotonic clock."""

    host: str
    address: str
    host_name: str
    clock: HostClock | None = None


class HostsPlan(Plan):
    """`places` are those of brokers and metadata nodes, and that of the clients' Toxiproxy if it
    does not run beside the lab. `beside_lab` has the clients' addresses otherwise."""

    def __init__(
        self, block: Block, places: Mapping[str, Place], *, beside_lab: LoopbackPlan
    ) -> None:
        """Raises LabFailure for more nodes than a block has ports for."""
        if len(places) > MOST_NODES:
            raise LabFailure(
                f"a cluster over hosts has at most {MOST_NODES} nodes, not {len(places)}: take "
                "fewer with --brokers, --zookeepers and --controllers"
            )
        super().__init__(
            beside_lab.ports,
            brokers=len(beside_lab.brokers),
            zookeepers=len(beside_lab.zookeepers),
            controllers=len(beside_lab.controllers),
        )
        self._block = block
        self._places = places
        self._beside_lab = beside_lab
        self._ports = {node: self._node_ports(node) for node in places}

    def ports_at(self, node: str) -> Ports:
        return self._ports.get(node, self.ports)

    def address(self, node: str) -> str:
        place = self._places.get(node)
        return self._beside_lab.address(node) if place is None else place.address

    def address_from(self, src: str, dst: str) -> str:
        if src not in self._places:
            return self._beside_lab.address_from(src, dst)
        if src == dst:
            return self.address(dst)
        return f"127.{self._block.octet}.{self.index(src)}.{self.index(dst)}"

    def own_names(self, node: str) -> list[str]:
        return [self._places[node].host_name, *super().own_names(node)]

    def toxiproxy_listens(self, node: str) -> Address:
        if node not in self._places:
            return self._beside_lab.toxiproxy_listens(node)
        return self.address(node), self.ports_at(node).toxiproxy

    def _entry_address(self, link: Link) -> Address:
        return self.address(link.src), self._entry_port(link)

    def client_address(self, broker: str, port: int) -> Address:
        return self.address_from(CLIENT, broker), port

    def entry_proxies(self, node: str) -> tuple[ProxyPlan, ...]:
        """A proxy for each link of the node, through which the lab probes it."""
        if node not in self._places:
            return ()
        return tuple(
            ProxyPlan(
                name=f"entry-{link.src}-{link.dst}",
                link=None,
                listen=f"{self.address(node)}:{self._entry_port(link)}",
                upstream=self._listen(link, self.ports_of(link)[0]),
            )
            for link in self.links()
            if link.src == node
        )

    def client_forwards(self) -> tuple[ProxyPlan, ...]:
        """The proxies by which the lab, and further hosts for clients, reach the clients' Toxiproxy
        at the addresses that brokers advertise."""
        return tuple(
            ProxyPlan(
                name=f"forward-{link.dst}",
                link=None,
                listen=self._listen(link, self.ports_of(link)[0]),
                upstream=f"{self.address(CLIENT)}:{self._entry_port(link)}",
            )
            for link in self.links()
            if link.src == CLIENT
        )

    def host_of(self, node: str) -> str:
        place = self._places.get(node)
        return "" if place is None else place.host

    def lab_time(self, node: str, at_ns: int) -> tuple[int, int]:
        place = self._places.get(node)
        clock = None if place is None else place.clock
        return super().lab_time(node, at_ns) if clock is None else clock.lab_time(at_ns)

    def _node_ports(self, node: str) -> Ports:
        first = self._block.node_port(self._ordinal(node))
        return Ports(**{name: first + at for at, name in enumerate(PORTS)})

    def _entry_port(self, link: Link) -> int:
        first = self._block.node_port(self._ordinal(link.src)) + len(PORTS)
        return first + self._ordinal(link.dst)

    def _ordinal(self, node: str) -> int:
        return self.nodes.index(node)
