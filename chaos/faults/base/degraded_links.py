"""The base class of faults that degrade links without cutting them, and its measurement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from urteil.chaos import node_selectors
from urteil.chaos.controls import Controls
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.fault_options import flag
from urteil.chaos.faults.base.cut_links import describe_answers
from urteil.chaos.faults.base.fault import LINKS_AT_ONCE, Fault, Proof, describe_broken_links
from urteil.chaos.node_selectors import NoTarget
from urteil.chaos.observations import Link, Transfer
from urteil.chaos.parallel import run_on_all
from urteil.chaos.waiting import until

Both = tuple[Transfer, Transfer]
TRANSFER_S = 10.0
SHOWN_S = 3.0
CLIENTS: bool = flag("include the clients' links of a node or role")
"""The option `clients` of faults of links."""


class DegradedLinks(Fault):
    """Puts a toxic on links and measures a transfer through each link before and after.

    Links without a complete transfer before are ignored. NoTarget, before acting, if no link
    remains.
    """

    selectors = "all, a role, a node (their links with all nodes), or a pair left->right"
    sample = "follower->leader"
    timeout_s: float = TRANSFER_S
    dst_closes: ClassVar[bool] = False
    clients: bool = CLIENTS
    links: tuple[Link, ...] = ()

    def add_toxic(self, controls: Controls) -> None:
        """Put the toxic on `links` under the name `owner`."""
        raise NotImplementedError

    def shows_effect(self, before: Transfer, after: Transfer) -> bool:
        """Whether the two measurements show the effect."""
        raise NotImplementedError

    def describe(self, before: Transfer, after: Transfer) -> str:
        """The two measurements of one link in a few words, with units."""
        raise NotImplementedError

    def choose(self, controls: Controls) -> list[Link]:
        """Select the links by the current state of the cluster."""
        return select_fault_links(controls, self.arguments, clients=self.clients)

    def request_count(self) -> int:
        """The number of requests of one transfer to a broker."""
        return 1

    def request_bytes(self) -> int:
        """The size of each request if they are sent one by one; 0 if all are sent at once."""
        return 0

    def begin(self, controls: Controls) -> Proof:
        self.links = tuple(self.choose(controls))
        self.targets = tuple(map(str, self.links))
        before = self._measure(controls, self.links)
        complete = [transfer for transfer in before if transfer.ended == "answered"]
        if not complete:
            raise NoTarget("none of these links carries a complete response")
        self.add_toxic(controls)
        both = self._await_effect(controls, complete)
        acted = [pair for pair in both if self.shows_effect(*pair)]
        text = "; ".join(f"{a.link}: {self.describe(b, a)}" for b, a in both)
        return Proof(acted=len(acted) == len(both), text=text)

    def _await_effect(self, controls: Controls, complete: Sequence[Transfer]) -> list[Both]:
        """The first measurement of each link that shows the effect, else the last one: with host
        load a slow reader may miss it."""
        before = {transfer.link: transfer for transfer in complete}
        after: dict[Link, Transfer] = {}

        def is_shown(link: Link) -> bool:
            return link in after and self.shows_effect(before[link], after[link])

        def is_visible() -> bool:
            unshown = [link for link in before if not is_shown(link)]
            after.update(zip(unshown, self._measure(controls, unshown), strict=True))
            return all(is_shown(link) for link in unshown)

        until(is_visible, deadline_s=SHOWN_S)
        return [(transfer, after[link]) for link, transfer in before.items()]

    def heal(self, controls: Controls) -> str:
        controls.net.heal(self.links, owner=self.owner)
        return describe_answers(controls, self.links)

    def find_residual_effects(self, controls: Controls) -> str:
        if broken := describe_broken_links(controls, self.links):
            return broken
        now = self._measure(controls, self.links)
        return "; ".join(
            f"{transfer.link}: {transfer.ended}" for transfer in now if transfer.ended != "answered"
        )

    def _measure(self, controls: Controls, links: Sequence[Link]) -> list[Transfer]:
        def measure(link: Link) -> Transfer:
            return controls.net.measure_transfer(
                link,
                request_count=self.request_count(),
                request_bytes=self.request_bytes(),
                dst_closes=self.dst_closes,
                timeout_s=self.timeout_s,
            )

        return run_on_all(measure, links, at_once=LINKS_AT_ONCE)


def select_fault_links(
    controls: Controls, arguments: FaultArguments, *, clients: bool
) -> list[Link]:
    """`all` selects every link of the cluster; a node or role selects all links from and to it."""
    if "->" in arguments.target:
        return node_selectors.select_links(controls, arguments)
    selected = {
        link
        for node in node_selectors.select_nodes(controls, arguments)
        for link in controls.net.links_of(node, clients=clients)
    }
    return [link for link in controls.net.links() if link in selected]
