"""Links that go and come back, at seeded moments, until they are healed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import cycle
from typing import ClassVar

from urteil.chaos.controls import Controls
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.faults.degraded_links import CLIENTS, links_of
from urteil.chaos.faults.fault import Fault, Proof, describe_broken_links
from urteil.chaos.faults.partition import answers_again, cut_and_prove
from urteil.chaos.faults.recurring_steps import RecurringSteps
from urteil.chaos.observations import Link


class Flapping(Fault):
    """Off at once, on and off again after seeded pauses; healing ends it with the links on."""

    name = "flapping"
    about = "links that go and come back at seeded moments, again and again"
    family = "network"
    proves = "a probe through each link, silent when it is first cut; how often it flapped"
    selectors = "all, a role, a node (their links with all nodes), or a pair left<->right"
    sample = "follower<->leader"
    sample_s = 2.5
    options: ClassVar[dict[str, str]] = {
        "lowest_ms": "the shortest time that links stay as they are (default 300)",
        "highest_ms": "the longest (default 1500)",
        "close": "break connections rather than stall them",
        **CLIENTS,
    }
    links: tuple[Link, ...] = ()
    flaps: RecurringSteps | None = None

    def __init__(self, arguments: FaultArguments) -> None:
        super().__init__(arguments)
        self.lowest_s = arguments.number("lowest_ms", 300) / 1000
        self.highest_s = arguments.number("highest_ms", 1500) / 1000
        if not 0.05 <= self.lowest_s <= self.highest_s <= 60:
            raise ValueError("lowest_ms and highest_ms: 50 <= lowest_ms <= highest_ms <= 60000")

    def begin(self, controls: Controls) -> Proof:
        self.links = tuple(links_of(controls, self))
        self.targets = tuple(map(str, self.links))
        proof = cut_and_prove(
            controls, self.links, owner=self.owner, close=self.arguments.flag("close")
        )
        steps = self._steps(controls)
        self.flaps = RecurringSteps(steps, self.arguments.random(), self.lowest_s, self.highest_s)
        return proof

    def heal(self, controls: Controls) -> str:
        try:
            if self.flaps is not None:
                self.flaps.stop()
        finally:
            controls.net.heal(self.links, owner=self.owner)
        times = 1 + (self.flaps.done // 2 if self.flaps is not None else 0)
        often = "once" if times == 1 else f"{times} times"
        return f"was off {often}; {answers_again(controls, self.links)}"

    def find_residual_effects(self, controls: Controls) -> str:
        return describe_broken_links(controls, self.links)

    def _steps(self, controls: Controls) -> Iterator[Callable[[], object]]:
        net = controls.net
        cut = net.close if self.arguments.flag("close") else net.cut
        return cycle(
            (
                lambda: net.heal(self.links, owner=self.owner),
                lambda: cut(self.links, owner=self.owner),
            )
        )
