"""A cluster's network on the loopback of one machine.

A cluster uses one network 127.N.0.0/16. `127.N.S.D` is the address of node D for node S: for S = D
the node's own address, otherwise an address of the Toxiproxy beside S, which leads to D.
"""

from __future__ import annotations

import random
import socket

from urteil.chaos.observations import CLIENT, LabFailure, Link
from urteil.chaos.topology import LOCALHOST, USUAL, Address, Layout, Plan, Ports, ProxyPlan

LOWEST_NETWORK, HIGHEST_NETWORK = 16, 250
LOWEST_PORT, HIGHEST_PORT = 20_000, 32_000
PORTS = (
    "internal",
    "client",
    "zookeeper",
    "peer",
    "election",
    "toxiproxy",
    "metrics",
    "users",
    "wan",
    "controller",
)
TOXIPROXY_INDEX, CLAIM_INDEX = 250, 254
CLAIM_PORT = 32_100
"""Every claim binds this port, so that two clusters never share a network."""


class Claim:
    """Reserves a free network and its ports until it is closed."""

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
        for bound_socket in self._sockets:
            bound_socket.close()
        self._sockets = []


def _bind_all(address: str, base: int) -> list[socket.socket]:
    """Bind all ports. Returns the sockets, or none if the network or a port is in use.

    This also fails for a port that another program has bound on all addresses.
    """
    sockets: list[socket.socket] = []
    for port in (CLAIM_PORT, *(base + at for at in range(len(PORTS)))):
        bound_socket = socket.socket()
        sockets.append(bound_socket)
        try:
            bound_socket.bind((address, port))
        except OSError:
            for bound in sockets:
                bound.close()
            return []
    return sockets


class LoopbackPlan(Plan):
    """The plan for nodes that are processes of this machine, with the same network as the lab."""

    def __init__(
        self,
        octet: int,
        ports: Ports,
        *,
        brokers: int,
        zookeepers: int,
        controllers: int = 0,
        layout: Layout = USUAL,
    ) -> None:
        super().__init__(
            ports, brokers=brokers, zookeepers=zookeepers, controllers=controllers, layout=layout
        )
        self.octet = octet

    def address(self, node: str) -> str:
        return self.address_from(node, node)

    def address_from(self, src: str, dst: str) -> str:
        return f"127.{self.octet}.{self.index(src)}.{self.index(dst)}"

    def own_names(self, node: str) -> list[str]:
        return [socket.gethostname(), socket.getfqdn(), *super().own_names(node)]

    def toxiproxy_listens(self, node: str) -> Address:
        return f"127.{self.octet}.{self.index(node)}.{TOXIPROXY_INDEX}", self.ports.toxiproxy

    def client_address(self, broker: str, port: int) -> Address:
        fixed = self.fixed_ports().get((broker, port))
        return (LOCALHOST, fixed) if fixed else (self.address_from(CLIENT, broker), port)

    def metrics_listen(self, broker: str) -> Address:
        fixed = self.fixed_ports().get((broker, self.ports.metrics))
        return (LOCALHOST, fixed) if fixed else super().metrics_listen(broker)

    def zookeeper_for_users(self, zookeeper: str) -> Address:
        fixed = self.fixed_ports().get((zookeeper, self.ports.zookeeper))
        return (LOCALHOST, fixed) if fixed else super().zookeeper_for_users(zookeeper)

    def entry_proxies(self, node: str) -> tuple[ProxyPlan, ...]:
        """Proxies of the clients' Toxiproxy from fixed ports to the ZooKeeper servers."""
        if node != CLIENT:
            return ()
        return tuple(
            ProxyPlan(
                name=f"door-{inside}",
                link=None,
                listen=f"{LOCALHOST}:{outside}",
                upstream="{}:{}".format(*self.direct_address(inside)),
            )
            for (inside, _), outside in self.fixed_ports().items()
            if inside in self.zookeepers
        )

    def _listen(self, link: Link, port: int) -> str:
        if link.src == CLIENT:
            return "{}:{}".format(*self.client_address(link.dst, port))
        return super()._listen(link, port)
