"""A node's clock runs too fast or too slow."""

from __future__ import annotations

import time
from itertools import repeat

from urteil.chaos.controls import Controls
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.fault_options import number
from urteil.chaos.faults.base.clock_fault import ClockFault
from urteil.chaos.faults.base.recurring_steps import RecurringSteps

STEP_S = 0.25


class ClockDrift(ClockFault):
    """The wall clocks of nodes run at another rate until healing, which corrects them.

    The fault sets the clocks in small steps. A node reads a new step about once a second.
    """

    name = "clock_drift"
    about = "a node's wall clock runs too fast or too slow until healing"
    rate: float = number(
        1.5, "seconds that the clock counts in one second, not 1", least=0.1, most=10
    )

    def __init__(self, arguments: FaultArguments) -> None:
        super().__init__(arguments)
        self.drifts: list[RecurringSteps] = []
        if self.rate == 1:
            raise ValueError("rate=1: give a number between 0.1 and 10 other than 1")

    def set_clock(self, controls: Controls, node: str) -> None:
        begin_s = time.monotonic()

        def step() -> None:
            gained_s = (time.monotonic() - begin_s) * (self.rate - 1)
            controls.clocks.set_offset(node, offset_s=gained_s)

        self.drifts.append(RecurringSteps(repeat(step), self.arguments.random(), STEP_S, STEP_S))

    def heal(self, controls: Controls) -> str:
        try:
            while self.drifts:
                self.drifts.pop().stop()
        finally:
            healed = super().heal(controls)
        return healed

    def is_visible(self, before_s: float, now_s: float, tolerated_s: float) -> bool:
        gained_s = now_s - before_s
        return abs(gained_s) > tolerated_s and (gained_s > 0) == (self.rate > 1)
