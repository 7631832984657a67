"""Packets between the hosts of a cluster. Implements `chaos.packet_controls.PacketControls`.

The receiving host has the rule. It matches the addresses of both hosts and the ports of the run's
nodes, so it never affects ssh, the lab's own connections and other labs. Clients beside the lab
have no host, and their links cross none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from urteil.chaos.observations import Link
from urteil.chaos.packet_controls import PacketCount
from urteil.chaos.topology import Plan
from urteil.harness.runtimes.hosts.packet_tables import PacketRule

Call = Callable[..., Any]
"""Calls an operation of the agent beside a node: node, operation, arguments."""


def reverse(link: Link) -> Link:
    return Link(link.dst, link.src)


class HostPackets:
    def __init__(self, plan: Plan, call: Call, require_filter: Callable[[str], None]) -> None:
        """`require_filter` raises LabFailure if the filter of a node's host cannot be used."""
        self._plan = plan
        self._call = call
        self._require_filter = require_filter
        self._filtering: dict[str, tuple[str, ...]] = {}

    def crossing_links(self, links: Sequence[Link]) -> list[Link]:
        return [link for link in links if self._crosses(link)]

    def disturbed_by(self, links: Sequence[Link]) -> list[Link]:
        return [
            other
            for other in self.crossing_links(self._plan.links())
            if any(self._suffers(other, link) for link in links)
        ]

    def drop(
        self, links: Sequence[Link], *, percent: int = 100, reject: bool = False, owner: str
    ) -> None:
        by_host: dict[str, dict[PacketRule, None]] = defaultdict(dict)
        receivers: dict[str, str] = {}
        for link in links:
            receiver = receivers.setdefault(self._plan.host_of(link.dst), link.dst)
            by_host[receiver] |= dict.fromkeys(self._rules(link, percent, reject))
        for node in by_host:
            self._require_filter(node)
        self._filtering[owner] = tuple(by_host)
        for node, rules in by_host.items():
            self._call(node, "filter_packets", owner, list(rules))

    def counts(self, *, owner: str) -> dict[str, PacketCount]:
        return {
            direction: PacketCount(seen=seen, lost=lost)
            for node in self._filtering.get(owner, ())
            for direction, (seen, lost) in self._call(node, "packet_counts", owner).items()
        }

    def restore(self, *, owner: str) -> None:
        for node in self._filtering.get(owner, ()):
            self._call(node, "restore_packets", owner)
        self._filtering.pop(owner, None)

    def _crosses(self, link: Link) -> bool:
        hosts = self._plan.host_of(link.src), self._plan.host_of(link.dst)
        return all(hosts) and hosts[0] != hosts[1]

    def _suffers(self, other: Link, link: Link) -> bool:
        """Whether packets of `other`, or their acknowledgements, are lost with those of `link`."""
        host_of, ports_of = self._plan.host_of, self._plan.ports_of
        return any(
            (host_of(other.src), other.dst) == (host_of(one.src), one.dst)
            and {*ports_of(other)} <= {*self._ports(one)}
            for one in (link, reverse(link))
        )

    def _ports(self, link: Link) -> tuple[int, ...]:
        """The ports of requests from one node to the other; empty if there are none: ZooKeeper
        servers only answer brokers."""
        return self._plan.ports_of(link) if link in self._plan.links() else ()

    def _rules(self, link: Link, percent: int, reject: bool) -> Iterable[PacketRule]:
        """The rules for requests over the link, and for answers to those over its reverse. A reset
        that answers a request is a packet of the other direction: it must arrive."""
        requests = ("dport", self._ports(link))
        answers = ("sport", () if reject else self._ports(reverse(link)))
        for port_of, ports in (requests, answers):
            if not ports:
                continue
            yield PacketRule(
                direction=str(link),
                src=self._plan.address(link.src),
                dst=self._plan.address(link.dst),
                port_of=port_of,
                ports=ports,
                percent=percent,
                reject=reject,
            )
