"""The base class of faults that set the wall clock of brokers and controllers."""

from __future__ import annotations

from operator import not_
from typing import ClassVar

from urteil.chaos import node_selectors
from urteil.chaos.controls import Controls
from urteil.chaos.effects import Effect
from urteil.chaos.faults.base.fault import PROCESS, SSH, STARTED_BY_LAB, Fault, Proof
from urteil.chaos.parallel import run_on_all
from urteil.chaos.waiting import until

DEADLINE_S = 8.0
TOLERATED_S = 0.5


class ClockFault(Fault):
    """Sets the wall clock of nodes by libfaketime; monotonic clocks stay correct.

    The cluster must have been started with `ClusterSpec(own_clocks=True)`.
    """

    effects = frozenset({Effect.MOVES_CLOCKS})
    proves = (
        "how far the broker's LogAppendTime, or the time of a controller's stack dump, is ahead of "
        "the lab's clock"
    )
    on_runtimes: ClassVar[tuple[str, ...]] = (PROCESS, SSH)
    on_targets: ClassVar[tuple[str, ...]] = STARTED_BY_LAB
    sample = ""

    def set_clock(self, controls: Controls, node: str) -> None:
        """Set the clock of one node."""
        raise NotImplementedError

    def is_visible(self, before_s: float, now_s: float, tolerated_s: float) -> bool:
        """Whether the offsets of the node's clock before and now show the effect."""
        raise NotImplementedError

    def begin(self, controls: Controls) -> Proof:
        self.targets = tuple(
            node_selectors.running_nodes(
                controls, node_selectors.select_nodes(controls, self.arguments)
            )
        )
        results = run_on_all(lambda node: self._set_and_measure(controls, node), self.targets)
        acted = bool(results) and all(acts for acts, _ in results)
        return Proof(acted=acted, text="; ".join(text for _, text in results) or "no node ran")

    def heal(self, controls: Controls) -> str:
        for node in self.targets:
            controls.clocks.set_offset(node, offset_s=0.0)
        return f"the clocks of {', '.join(self.targets)} are correct again"

    def find_residual_effects(self, controls: Controls) -> str:
        def describe_wrong_clocks() -> str:
            ahead = {node: controls.clocks.clock_offset_s(node) for node in self.targets}
            return ", ".join(
                f"{node} is {ahead_s:+.1f} s ahead"
                for node, ahead_s in ahead.items()
                if abs(ahead_s) > _tolerated_s(controls, node)
            )

        return until(describe_wrong_clocks, not_, deadline_s=DEADLINE_S)

    def _set_and_measure(self, controls: Controls, node: str) -> tuple[bool, str]:
        before_s, tolerated_s = controls.clocks.clock_offset_s(node), _tolerated_s(controls, node)
        self.set_clock(controls, node)
        now_s = until(
            lambda: controls.clocks.clock_offset_s(node),
            lambda now_s: self.is_visible(before_s, now_s, tolerated_s),
            deadline_s=DEADLINE_S,
        )
        text = f"{node}'s clock was {before_s:+.1f} s ahead before, and is {now_s:+.1f} s now"
        return self.is_visible(before_s, now_s, tolerated_s), text


def _tolerated_s(controls: Controls, node: str) -> float:
    """The largest difference of two readings that may be their error."""
    return TOLERATED_S + 2 * controls.clocks.precision_s(node)
