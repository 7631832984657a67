"""A cluster's network in containers.

Every node is a pod: one network namespace with an address of its own on the run's data network, in
which the node and its Toxiproxy run. `127.77.S.D` is node D as node S sees it, on the loopback of
S's pod, where the Toxiproxy beside S listens for D. The lab is outside: it comes in by published
ports of the pods, some of which lead to doors, proxies that no fault touches.
"""

from __future__ import annotations

from collections.abc import Mapping

from urteil.chaos.topology import Address, Plan, Ports, ProxyPlan, index
from urteil.chaos.views import CLIENT, Link

PORTS = Ports(
    internal=9092,
    client=9093,
    zookeeper=2181,
    peer=2888,
    election=3888,
    toxiproxy=8474,
    metrics=9404,
)
EVERYWHERE = "0.0.0.0"
CLIENT_PORT = 20_000
"""Where the clients' Toxiproxy listens for broker N: this and N."""
DOOR = 30_000
"""Where a pod's door to its own node listens; those to other nodes at this and their number."""


class PodPlan(Plan):
    """`published` leads from a pod's node and port to where the lab reaches it."""

    def __init__(self, subnet: str, *, brokers: int, zookeepers: int) -> None:
        """`subnet` is the data network's first three octets."""
        super().__init__(PORTS, brokers=brokers, zookeepers=zookeepers)
        self._subnet = subnet
        self.published: Mapping[tuple[str, int], Address] = {}

    def address(self, node: str) -> str:
        return f"{self._subnet}.{index(node)}"

    def seen(self, src: str, dst: str) -> str:
        return self.address(src) if src == dst else f"127.77.{index(src)}.{index(dst)}"

    def toxiproxy_listens(self, node: str) -> Address:
        return EVERYWHERE, self.ports.toxiproxy

    def toxiproxy(self, node: str) -> Address:
        return self.published[node, self.ports.toxiproxy]

    def direct(self, node: str) -> Address:
        return self.published[node, DOOR]

    def through(self, link: Link) -> Address:
        if link.src == CLIENT:
            return self.for_clients(link.dst)
        return self.published[link.src, DOOR + index(link.dst)]

    def for_clients(self, broker: str) -> Address:
        return self.published[CLIENT, CLIENT_PORT + index(broker)]

    def metrics_listen(self, broker: str) -> Address:
        return EVERYWHERE, self.ports.metrics

    def metrics(self, broker: str) -> Address:
        return self.published[broker, self.ports.metrics]

    def doors(self, node: str) -> tuple[ProxyPlan, ...]:
        if node == CLIENT:
            return ()
        own = f"{self.address(node)}:{self.service_port(node)}"
        links = [link for link in self.links() if link.src == node]
        return (
            _door(node, DOOR, own),
            *(
                _door(node, DOOR + index(link.dst), self._listen(link, self.ports_of(link)[0]))
                for link in links
            ),
        )

    def published_ports(self, node: str) -> list[int]:
        """Ports of a pod that the lab or its clients must reach."""
        if node == CLIENT:
            inside = [CLIENT_PORT + index(broker) for broker in self.brokers]
        else:
            inside = [int(door.listen.rpartition(":")[2]) for door in self.doors(node)]
        if node in self.brokers:
            inside.append(self.ports.metrics)
        return [self.ports.toxiproxy, *inside]

    def _listen(self, link: Link, port: int) -> str:
        if link.src == CLIENT:
            return f"{EVERYWHERE}:{CLIENT_PORT + index(link.dst)}"
        return super()._listen(link, port)


def _door(node: str, port: int, upstream: str) -> ProxyPlan:
    name = f"door-{node}-{port}"
    return ProxyPlan(name=name, link=None, listen=f"{EVERYWHERE}:{port}", upstream=upstream)
