"""What faults of clocks share: brokers whose wall clock is set, shown by what they stamp."""

from __future__ import annotations

import time
from typing import ClassVar

from urteil.chaos import node_selectors
from urteil.chaos.controls import Controls
from urteil.chaos.faults.fault import KAFKA, MIX, PROCESS, URTEIL, Fault, Proof, run_on_all

SHOWN_S = 8.0
TOLERATED_S = 0.5
POLL_S = 0.1


class ClockFault(Fault):
    """Set the wall clock of brokers by libfaketime; monotonic clocks stay true.

    The cluster must have been started with clocks of its own (`ClusterSpec(own_clocks=True)`).
    """

    family = "clock"
    proves = "how far the time that the broker stamps on a record (LogAppendTime) is ahead of ours"
    on_runtimes: ClassVar[tuple[str, ...]] = (PROCESS,)
    on_targets: ClassVar[tuple[str, ...]] = (URTEIL, KAFKA, MIX)
    sample = ""

    def turn(self, controls: Controls, node: str) -> None:
        """Set one broker's clock."""
        raise NotImplementedError

    def shown(self, before_s: float, now_s: float) -> bool:
        """Whether it shows, by how far the broker's clock was ahead and is now."""
        raise NotImplementedError

    def begin(self, controls: Controls) -> Proof:
        self.targets = tuple(
            node_selectors.running_nodes(
                controls, node_selectors.select_nodes(controls, self.arguments)
            )
        )
        told = run_on_all(lambda node: self._turned(controls, node), self.targets)
        acted = bool(told) and all(one for one, _ in told)
        return Proof(acted=acted, text="; ".join(text for _, text in told) or "nobody ran")

    def heal(self, controls: Controls) -> str:
        for node in self.targets:
            controls.clocks.set_offset(node, offset_s=0.0)
        return f"the clocks of {', '.join(self.targets)} are set right"

    def find_residual_effects(self, controls: Controls) -> str:
        deadline = time.monotonic() + SHOWN_S
        while True:
            ahead = {node: controls.clocks.clock_offset_s(node) for node in self.targets}
            wrong = [f"{n} is {s:+.1f} s ahead" for n, s in ahead.items() if abs(s) > TOLERATED_S]
            if not wrong or time.monotonic() > deadline:
                return ", ".join(wrong)
            time.sleep(POLL_S)

    def _turned(self, controls: Controls, node: str) -> tuple[bool, str]:
        before_s = controls.clocks.clock_offset_s(node)
        self.turn(controls, node)
        deadline = time.monotonic() + SHOWN_S
        while True:
            now_s = controls.clocks.clock_offset_s(node)
            shown = self.shown(before_s, now_s)
            if shown or time.monotonic() > deadline:
                text = f"{node} stamped a record {before_s:+.1f} s ahead before, {now_s:+.1f} s now"
                return shown, text
            time.sleep(POLL_S)
