"""The base class of faults of the packet filter, and their proof by its counters."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from urteil.chaos.controls import Controls
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.faults.base.cut_links import PROBE_S, describe_answers
from urteil.chaos.faults.base.degraded_links import select_fault_links
from urteil.chaos.faults.base.fault import (
    SSH,
    STARTED_BY_LAB,
    Fault,
    describe_broken_links,
    probe_all,
)
from urteil.chaos.node_selectors import NoTarget
from urteil.chaos.observations import Link
from urteil.chaos.packet_controls import PacketCount
from urteil.chaos.waiting import until

COUNTED_S = 8.0

Counts = Mapping[str, PacketCount]


class PacketFault(Fault):
    """A fault that is a set of rules of the hosts' packet filters.

    Only packets from host to host are filtered, at ports of the run's own nodes. `links` are the
    directions, `targets` every link that suffers. NoTarget if no link crosses hosts.
    """

    selectors = "a role, a node (its links with all nodes), or a pair left->right"
    on_runtimes = (SSH,)
    on_targets = STARTED_BY_LAB
    sample = "follower<->leader"
    links: tuple[Link, ...] = ()

    def __init__(self, arguments: FaultArguments) -> None:
        super().__init__(arguments)
        self._last: Counts = {}

    def choose(self, controls: Controls) -> list[Link]:
        """Select the links by the current state of the cluster. Sets `links` and `targets`, and
        returns the links that suffer."""
        selected = select_fault_links(controls, self.arguments, clients=False)
        if "<->" in self.arguments.target or "->" not in self.arguments.target:
            selected += [Link(link.dst, link.src) for link in selected]
        self.links = tuple(dict.fromkeys(controls.packets.crossing_links(selected)))
        if not self.links:
            raise NoTarget(f"no link of {self.arguments.target} leads from one host to another")
        disturbed = list(controls.packets.disturbed_by(self.links))
        self.targets = tuple(map(str, disturbed))
        return disturbed

    def count_until(
        self, controls: Controls, disturbed: list[Link], is_proof: Callable[[Counts], bool]
    ) -> Counts:
        """The counts when they are a proof, or at the deadline. Probes cause packets meanwhile."""

        def count() -> Counts:
            counts = controls.packets.counts(owner=self.owner)
            if not is_proof(counts):
                probe_all(controls, disturbed, timeout_s=PROBE_S)
            return counts

        return until(count, is_proof, deadline_s=COUNTED_S)

    def heal(self, controls: Controls) -> str:
        self._last = controls.packets.counts(owner=self.owner) or self._last
        controls.packets.restore(owner=self.owner)
        links = [link for link in controls.net.links() if str(link) in self.targets]
        return f"rules removed; {describe_answers(controls, links)}"

    @property
    def last_counts(self) -> Counts:
        """The counts at healing."""
        return self._last

    def find_residual_effects(self, controls: Controls) -> str:
        if left := controls.packets.counts(owner=self.owner):
            return f"rules are left: {describe_counts(left)}"
        links = [link for link in controls.net.links() if str(link) in self.targets]
        return describe_broken_links(controls, links)


def all_lost(counts: Counts) -> bool:
    """Whether packets of every direction were lost."""
    return bool(counts) and all(count.lost for count in counts.values())


def describe_counts(counts: Counts) -> str:
    return "; ".join(
        f"{direction}: {count.lost} of {count.seen} packets lost"
        for direction, count in counts.items()
    )
