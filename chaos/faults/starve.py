"""Nodes with hardly any processor time: late in everything, and alive."""

from __future__ import annotations

import math
import time
from typing import ClassVar

from urteil.chaos import node_selectors
from urteil.chaos.controls import Controls
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.faults.fault import KAFKA, MIX, URTEIL, Fault, Proof, run_on_all
from urteil.chaos.observations import Limits

CPUS = 0.1
SEEN = 3
QUESTIONS = 3000
DEADLINE_S = 10.0


class Starve(Fault):
    """A share of one processor: by SIGSTOP and SIGCONT, or by the container's control group."""

    name = "starve"
    about = "leave a node a fraction of one processor while it runs"
    family = "process"
    proves = "periods in which the process was seen stopped, or its control group held it back"
    on_targets = (URTEIL, KAFKA, MIX)
    options: ClassVar[dict[str, str]] = {
        "cpus": f"the share of one processor, 0.01 to 0.9 (default {CPUS})"
    }

    def __init__(self, arguments: FaultArguments) -> None:
        super().__init__(arguments)
        self.cpus = arguments.number("cpus", CPUS, least=0.01, most=0.9)

    def begin(self, controls: Controls) -> Proof:
        self.targets = tuple(node_selectors.select_running(controls, self.arguments))
        first = run_on_all(lambda node: controls.throttle_cpu(node, self.cpus), self.targets)
        seen = {one.node: one.throttled + SEEN for one in first}
        after = run_on_all(lambda node: _throttled(controls, node, seen[node]), self.targets)
        acted = bool(after) and all(self._acts(one, seen[one.node]) for one in after)
        return Proof(acted=acted, text="; ".join(map(_told, after)))

    def heal(self, controls: Controls) -> str:
        return "; ".join(map(_told, run_on_all(controls.restore_cpu, self.targets)))

    def find_residual_effects(self, controls: Controls) -> str:
        now = run_on_all(controls.cpu_throttling, self.targets)
        return "; ".join(_told(one) for one in now if one.cpus is not None)

    def _acts(self, limits: Limits, seen: int) -> bool:
        limited = math.isclose(limits.cpus or 0.0, self.cpus, abs_tol=1e-5)
        return limited and limits.throttled >= seen


def _throttled(controls: Controls, node: str, seen: int) -> Limits:
    """What the node is limited to, once that was felt: it is given something to do meanwhile."""
    doors = [link for link in controls.net.links() if link.dst == node]
    deadline = time.monotonic() + DEADLINE_S
    while (now := controls.cpu_throttling(node)).throttled < seen and time.monotonic() < deadline:
        for door in doors[:1]:
            controls.net.measure_transfer(door, questions=QUESTIONS, timeout_s=1.0)
    return now


def _told(limits: Limits) -> str:
    cpus = "all processors" if limits.cpus is None else f"{limits.cpus:g} processors"
    return f"{limits.node}: {cpus}, held back in {limits.throttled} of {limits.periods} periods"
