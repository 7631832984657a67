"""The network plan of a cluster in containers.

Every node is a pod: one network namespace with an address of its own on the run's data network, in
which the node and its Toxiproxy run. `127.77.S.D` is the address of node D for node S, on the
loopback of S's pod, where the Toxiproxy beside S listens for D. The lab is outside and uses
published ports of the pods. Some of these lead to entries, which are proxies without faults.
"""

from __future__ import annotations

from collections.abc import Mapping

from urteil.chaos.observations import CLIENT, Link
from urteil.chaos.topology import USUAL, Address, Layout, Plan, Ports, ProxyPlan

PORTS = Ports(
    internal=9092,
    client=9093,
    zookeeper=2181,
    peer=2888,
    election=3888,
    toxiproxy=8474,
    metrics=9404,
    users=9094,
    network=9095,
    controller=9096,
)
EVERYWHERE = "0.0.0.0"
CLIENT_PORT, USERS_PORT = 20_000, 21_000
"""The clients' Toxiproxy listens for broker N at this port + N."""
NETWORK_PORT, NETWORK_ZOOKEEPER = 19_091, 2_180
"""For other containers, it listens at this port + the number of a broker or of a ZooKeeper
server."""
ENTRY_PORT = 30_000
"""A pod's proxy to its own node listens at this port; those to other nodes at this port + their
number."""


class PodPlan(Plan):
    """`published` maps a pod's node and port to the lab's address for it."""

    def __init__(
        self,
        subnet: str,
        *,
        brokers: int,
        zookeepers: int,
        controllers: int = 0,
        layout: Layout = USUAL,
    ) -> None:
        """`subnet` is the data network's first three octets."""
        super().__init__(
            PORTS,
            brokers=brokers,
            zookeepers=zookeepers,
            controllers=controllers,
            layout=layout,
        )
        self._subnet = subnet
        self.published: Mapping[tuple[str, int], Address] = {}

    def address(self, node: str) -> str:
        return f"{self._subnet}.{self.index(node)}"

    def address_from(self, src: str, dst: str) -> str:
        return self.address(src) if src == dst else f"127.77.{self.index(src)}.{self.index(dst)}"

    def toxiproxy_listens(self, node: str) -> Address:
        return EVERYWHERE, self.ports.toxiproxy

    def toxiproxy(self, node: str) -> Address:
        return self.published[node, self.ports.toxiproxy]

    def direct_address(self, node: str) -> Address:
        return self.published[node, ENTRY_PORT]

    def _entry_address(self, link: Link) -> Address:
        return self.published[link.src, ENTRY_PORT + self.index(link.dst)]

    def client_address(self, broker: str, port: int) -> Address:
        inside = self._proxy_port(broker, port)
        return (broker, inside) if port == self.ports.network else self.published[CLIENT, inside]

    def network_zookeeper(self) -> list[str]:
        """The ensemble for other containers on the network of the layout."""
        return [
            f"{zookeeper}:{NETWORK_ZOOKEEPER + int(zookeeper[2:])}" for zookeeper in self.zookeepers
        ]

    def metrics_listen(self, broker: str) -> Address:
        return EVERYWHERE, self.ports.metrics

    def metrics(self, broker: str) -> Address:
        return self.published[broker, self.ports.metrics]

    def entry_proxies(self, node: str) -> tuple[ProxyPlan, ...]:
        if node == CLIENT:
            return self._network_entry_proxies()
        own = f"{self.address(node)}:{self.service_port(node)}"
        links = [link for link in self.links() if link.src == node]
        return (
            _entry_proxy(node, ENTRY_PORT, own),
            *(
                _entry_proxy(
                    node,
                    ENTRY_PORT + self.index(link.dst),
                    self._listen(link, self.ports_of(link)[0]),
                )
                for link in links
            ),
        )

    def published_ports(self, node: str) -> list[int]:
        """Ports of a pod that the lab or its clients must reach."""
        if node == CLIENT:
            ports = [port for port in self.client_ports if port != self.ports.network]
            inside = [self._proxy_port(broker, port) for broker in self.brokers for port in ports]
        else:
            inside = [int(proxy.listen.rpartition(":")[2]) for proxy in self.entry_proxies(node)]
        if node in self.brokers:
            inside.append(self.ports.metrics)
        return [self.ports.toxiproxy, *inside]

    def host_ports(self, node: str) -> dict[int, int | None]:
        """The same ports, each with the port of the engine's machine; None if the engine may choose
        it."""
        fixed = {
            (
                CLIENT if port == self.users_port else own_port,
                self._published_as(own_port, port),
            ): outside
            for (own_port, port), outside in self.fixed_ports().items()
        }
        return {inside: fixed.get((node, inside)) for inside in self.published_ports(node)}

    def _published_as(self, node: str, port: int) -> int:
        if port == self.ports.metrics:
            return port
        return ENTRY_PORT if port == self.ports.zookeeper else self._proxy_port(node, port)

    def _proxy_port(self, broker: str, port: int) -> int:
        """The port at which the clients' Toxiproxy listens for a port of a broker."""
        bases = {
            self.ports.client: CLIENT_PORT,
            self.ports.users: USERS_PORT,
            self.ports.network: NETWORK_PORT,
        }
        return bases[port] + self.index(broker)

    def _network_entry_proxies(self) -> tuple[ProxyPlan, ...]:
        if not self.layout.network:
            return ()
        return tuple(
            ProxyPlan(
                name=f"door-{zookeeper}",
                link=None,
                listen=f"{EVERYWHERE}:{NETWORK_ZOOKEEPER + int(zookeeper[2:])}",
                upstream=f"{self.address(zookeeper)}:{self.ports.zookeeper}",
            )
            for zookeeper in self.zookeepers
        )

    def _listen(self, link: Link, port: int) -> str:
        if link.src == CLIENT:
            return f"{EVERYWHERE}:{self._proxy_port(link.dst, port)}"
        return super()._listen(link, port)


def _entry_proxy(node: str, port: int, upstream: str) -> ProxyPlan:
    name = f"door-{node}-{port}"
    return ProxyPlan(name=name, link=None, listen=f"{EVERYWHERE}:{port}", upstream=upstream)
