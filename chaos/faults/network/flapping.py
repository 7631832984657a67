"""Links that go down and up at random moments until healing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import cycle
from typing import ClassVar

from urteil.chaos.controls import Controls
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.faults.base.cut_links import cut_and_prove, describe_answers
from urteil.chaos.faults.base.degraded_links import CLIENTS, select_fault_links
from urteil.chaos.faults.base.fault import Fault, Proof, describe_broken_links
from urteil.chaos.faults.base.recurring_steps import RecurringSteps
from urteil.chaos.observations import Link


class Flapping(Fault):
    """Cuts the links at once, then restores and cuts them after random pauses. Healing restores
    them."""

    name = "flapping"
    about = "cut and restore links again and again, at moments that the seed decides"
    proves = "a probe through each link without response at the first cut; the number of cuts"
    selectors = "all, a role, a node (their links with all nodes), or a pair left<->right"
    sample = "follower<->leader"
    sample_s = 2.5
    options: ClassVar[dict[str, str]] = {
        "lowest_ms": "the shortest time between a cut and a restore (default 300)",
        "highest_ms": "the longest such time (default 1500)",
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
        self.links = tuple(select_fault_links(controls, self))
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
        return f"was cut {often}; {describe_answers(controls, self.links)}"

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
