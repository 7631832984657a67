"""Links that go down and up at random moments until healing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import cycle

from urteil.chaos.controls import Controls
from urteil.chaos.effects import Effect
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.fault_options import number
from urteil.chaos.faults.base.cut_links import CLOSE, cut_and_prove, describe_answers
from urteil.chaos.faults.base.degraded_links import CLIENTS, select_fault_links
from urteil.chaos.faults.base.fault import Fault, Proof, describe_broken_links
from urteil.chaos.faults.base.recurring_steps import RecurringSteps, check_range
from urteil.chaos.observations import Link


class Flapping(Fault):
    """Cuts the links at once, then restores and cuts them after random pauses. Healing restores
    them."""

    name = "flapping"
    about = "cut and restore links again and again, at moments that the seed decides"
    effects = frozenset({Effect.CUTS_LINKS, Effect.REPEATS})
    proves = "a probe through each link without response at the first cut; the number of cuts"
    selectors = "all, a role, a node (their links with all nodes), or a pair left<->right"
    sample = "follower<->leader"
    sample_s = 2.5
    lowest_ms: float = number(
        300, "the shortest time between a cut and a restore", unit="ms", least=50, most=60_000
    )
    highest_ms: float = number(1500, "the longest such time", unit="ms", least=50, most=60_000)
    close: bool = CLOSE
    clients: bool = CLIENTS
    links: tuple[Link, ...] = ()
    flaps: RecurringSteps | None = None

    def __init__(self, arguments: FaultArguments) -> None:
        super().__init__(arguments)
        check_range(self.lowest_ms, self.highest_ms)

    def begin(self, controls: Controls) -> Proof:
        self.links = tuple(select_fault_links(controls, self.arguments, clients=self.clients))
        self.targets = tuple(map(str, self.links))
        proof = cut_and_prove(controls, self.links, owner=self.owner, close=self.close)
        steps = self._steps(controls)
        pauses_s = self.lowest_ms / 1000, self.highest_ms / 1000
        self.flaps = RecurringSteps(steps, self.arguments.random(), *pauses_s)
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
        cut = net.close if self.close else net.cut
        return cycle(
            (
                lambda: net.heal(self.links, owner=self.owner),
                lambda: cut(self.links, owner=self.owner),
            )
        )
