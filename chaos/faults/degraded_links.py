"""What faults share that let links work, but badly: whose links, and measuring them."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar

from urteil.chaos import node_selectors
from urteil.chaos.controls import Controls
from urteil.chaos.faults.fault import Fault, Proof, describe_broken_links, until
from urteil.chaos.faults.partition import answers_again
from urteil.chaos.node_selectors import NoTarget
from urteil.chaos.observations import Link, Transfer

Both = tuple[Transfer, Transfer]
TRANSFER_S = 10.0
SHOWN_S = 3.0
CLIENTS = {"clients": "the clients' links too, of a node or role (default false)"}


class DegradedLinks(Fault):
    """A toxic on links, measured by one transfer through each before and after.

    Links that carried no whole answer before prove nothing and are passed over; NoTarget, before it
    acts, when there is no other.
    """

    family = "network"
    selectors = "all, a role, a node (their links with all nodes), or a pair left->right"
    sample = "follower->leader"
    timeout_s: float = TRANSFER_S
    dst_closes: ClassVar[bool] = False
    links: tuple[Link, ...] = ()

    def spoil(self, controls: Controls) -> None:
        """Put the toxic on `links`, as `owner`."""
        raise NotImplementedError

    def spoilt(self, before: Transfer, after: Transfer) -> bool:
        """Whether the two measurements show the effect."""
        raise NotImplementedError

    def told(self, before: Transfer, after: Transfer) -> str:
        """What was measured on one link, in a few words with units."""
        raise NotImplementedError

    def choose(self, controls: Controls) -> list[Link]:
        """The links to spoil, by the cluster's present state."""
        return links_of(controls, self)

    def questions(self) -> int:
        """How many questions a transfer asks a broker."""
        return 1

    def question_bytes(self) -> int:
        """How large each is, when they are asked one after the other; 0: all at once."""
        return 0

    def begin(self, controls: Controls) -> Proof:
        self.links = tuple(self.choose(controls))
        self.targets = tuple(map(str, self.links))
        before = self._measure(controls, self.links)
        whole = [one for one in before if one.ended == "answered"]
        if not whole:
            raise NoTarget("none of these links carries a whole answer")
        self.spoil(controls)
        both = self._spoilt(controls, whole)
        acted = [pair for pair in both if self.spoilt(*pair)]
        text = "; ".join(f"{a.link}: {self.told(b, a)}" for b, a in both)
        return Proof(acted=len(acted) == len(both), text=text)

    def _spoilt(self, controls: Controls, whole: Sequence[Transfer]) -> list[Both]:
        """The first measurement that shows the effect on every link, else the last: a reader that
        is late on a busy machine may miss what arrives."""
        both: list[Both] = []

        def shown() -> bool:
            after = self._measure(controls, [one.link for one in whole])
            both[:] = zip(whole, after, strict=True)
            return all(self.spoilt(*pair) for pair in both)

        until(shown, deadline_s=SHOWN_S)
        return both

    def heal(self, controls: Controls) -> str:
        controls.net.heal(self.links, owner=self.owner)
        return answers_again(controls, self.links)

    def find_residual_effects(self, controls: Controls) -> str:
        if broken := describe_broken_links(controls, self.links):
            return broken
        now = self._measure(controls, self.links)
        return "; ".join(f"{one.link}: {one.ended}" for one in now if one.ended != "answered")

    def _measure(self, controls: Controls, links: Sequence[Link]) -> list[Transfer]:
        def one(link: Link) -> Transfer:
            return controls.net.measure_transfer(
                link,
                questions=self.questions(),
                question_bytes=self.question_bytes(),
                dst_closes=self.dst_closes,
                timeout_s=self.timeout_s,
            )

        with ThreadPoolExecutor(max(1, min(16, len(links)))) as pool:
            return list(pool.map(one, links))


def links_of(controls: Controls, fault: Fault) -> list[Link]:
    """`all` means every link of the cluster, a node or role all links from and to it."""
    if "->" in fault.arguments.target:
        return node_selectors.select_links(controls, fault.arguments)
    clients = fault.arguments.flag("clients")
    mine = {
        link
        for node in node_selectors.select_nodes(controls, fault.arguments)
        for link in controls.net.links_of(node, clients=clients)
    }
    return [link for link in controls.net.links() if link in mine]
