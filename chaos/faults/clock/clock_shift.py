"""A node's clock jumps forward or back, as after a wrong correction by a time server."""

from __future__ import annotations

from urteil.chaos.controls import Controls
from urteil.chaos.fault_options import number
from urteil.chaos.faults.base.clock_fault import ClockFault


class ClockShift(ClockFault):
    """Sets the wall clocks of nodes forward or back while they run; healing corrects them."""

    name = "clock_shift"
    about = "a node's wall clock jumps forward or back, and is corrected at healing"
    offset_s: float = number(300.0, "time ahead of true time, negative for behind", unit="s")

    def set_clock(self, controls: Controls, node: str) -> None:
        controls.clocks.set_offset(node, offset_s=self.offset_s)

    def is_visible(self, before_s: float, now_s: float, tolerated_s: float) -> bool:
        return abs(now_s - self.offset_s) < tolerated_s < abs(now_s - before_s)
