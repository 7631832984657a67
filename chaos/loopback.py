"""A cluster's network on the loopback of one machine.

A cluster takes one network 127.N.0.0/16. `127.N.S.D` is node D as node S sees it: for S = D the
node's own address, else an address at which the Toxiproxy beside S listens for D.
"""

from __future__ import annotations

import random
import socket

from urteil.chaos.observations import CLIENT, LabFailure, Link
from urteil.chaos.topology import LOCALHOST, USUAL, Address, Layout, Plan, Ports, ProxyPlan

LOWEST_NETWORK, HIGHEST_NETWORK = 16, 250
LOWEST_PORT, HIGHEST_PORT = 20_000, 32_000
PORTS = ("internal", "client", "zookeeper", "peer", "election", "toxiproxy", "metrics", "users")
TOXIPROXY_INDEX, CLAIM_INDEX = 250, 254
CLAIM_PORT = 32_100
"""The port that every claim of one network binds, so that two can never share it."""


class Claim:
    """Holds a free network, its second octet and its ports, for as long as it is open."""

    def __init__(self) -> None:
        rng = random.SystemRandom()
        for _ in range(100):
            octet = rng.randint(LOWEST_NETWORK, HIGHEST_NETWORK)
            base = rng.randrange(LOWEST_PORT, HIGHEST_PORT, len(PORTS))
            sockets = _bind_all(f"127.{octet}.0.{CLAIM_INDEX}", base)
            if sockets:
                self._sockets = sockets
                self.octet = octet
                self.ports = Ports(**{name: base + at for at, name in enumerate(PORTS)})
                return
        raise LabFailure(
            "no free loopback network: the lab needs addresses in 127.0.0.0/8 "
            "(on macOS add them with `ifconfig lo0 alias`)"
        )

    def close(self) -> None:
        for one in self._sockets:
            one.close()
        self._sockets = []


def _bind_all(address: str, base: int) -> list[socket.socket]:
    """Sockets that hold the network, or none when it or a port is taken.

    A port that some program holds on every address cannot be bound on this one either.
    """
    sockets: list[socket.socket] = []
    for port in (CLAIM_PORT, *(base + at for at in range(len(PORTS)))):
        one = socket.socket()
        sockets.append(one)
        try:
            one.bind((address, port))
        except OSError:
            for taken in sockets:
                taken.close()
            return []
    return sockets


class LoopbackPlan(Plan):
    """Nodes are processes of this machine: the lab reaches all that they reach."""

    def __init__(
        self, octet: int, ports: Ports, *, brokers: int, zookeepers: int, layout: Layout = USUAL
    ) -> None:
        super().__init__(ports, brokers=brokers, zookeepers=zookeepers, layout=layout)
        self.octet = octet

    def address(self, node: str) -> str:
        return self.seen(node, node)

    def seen(self, src: str, dst: str) -> str:
        return f"127.{self.octet}.{self.index(src)}.{self.index(dst)}"

    def own_names(self) -> list[str]:
        return [socket.gethostname(), socket.getfqdn(), *super().own_names()]

    def toxiproxy_listens(self, node: str) -> Address:
        return f"127.{self.octet}.{self.index(node)}.{TOXIPROXY_INDEX}", self.ports.toxiproxy

    def toxiproxy(self, node: str) -> Address:
        return self.toxiproxy_listens(node)

    def direct(self, node: str) -> Address:
        return self.address(node), self.service_port(node)

    def through(self, link: Link) -> Address:
        if link.src == CLIENT:
            return self.for_clients(link.dst)
        return self.seen(link.src, link.dst), self.ports_of(link)[0]

    def reached(self, broker: str, port: int) -> Address:
        fixed = self.fixed_ports().get((broker, port))
        return (LOCALHOST, fixed) if fixed else (self.seen(CLIENT, broker), port)

    def metrics_listen(self, broker: str) -> Address:
        fixed = self.fixed_ports().get((broker, self.ports.metrics))
        return (LOCALHOST, fixed) if fixed else super().metrics_listen(broker)

    def zookeeper_for_users(self, zookeeper: str) -> Address:
        fixed = self.fixed_ports().get((zookeeper, self.ports.zookeeper))
        return (LOCALHOST, fixed) if fixed else super().zookeeper_for_users(zookeeper)

    def doors(self, node: str) -> tuple[ProxyPlan, ...]:
        """Those of the clients' Toxiproxy that lead fixed ports to the ZooKeepers."""
        if node != CLIENT:
            return ()
        return tuple(
            ProxyPlan(
                name=f"door-{inside}",
                link=None,
                listen=f"{LOCALHOST}:{outside}",
                upstream="{}:{}".format(*self.direct(inside)),
            )
            for (inside, _), outside in self.fixed_ports().items()
            if inside in self.zookeepers
        )

    def _listen(self, link: Link, port: int) -> str:
        if link.src == CLIENT:
            return "{}:{}".format(*self.reached(link.dst, port))
        return super()._listen(link, port)
