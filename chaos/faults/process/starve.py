"""Nodes with hardly any processor time: slow, but alive."""

from __future__ import annotations

import math

from urteil.chaos import node_selectors
from urteil.chaos.controls import Controls
from urteil.chaos.effects import Effect
from urteil.chaos.fault_options import number
from urteil.chaos.faults.base.fault import STARTED_BY_LAB, Fault, Proof
from urteil.chaos.observations import Limits
from urteil.chaos.parallel import run_on_all
from urteil.chaos.waiting import until

THROTTLED_PERIODS = 3
REQUESTS = 3000
DEADLINE_S = 10.0


class Starve(Fault):
    """Limits a node to a share of one processor, by SIGSTOP and SIGCONT or by the container's
    control group."""

    name = "starve"
    about = "leave a node a fraction of one processor while it runs"
    effects = frozenset({Effect.STARVES_NODES})
    proves = "periods in which the process was stopped or throttled by its control group"
    on_targets = STARTED_BY_LAB
    cpus: float = number(0.1, "share of one processor", least=0.01, most=0.9)

    def begin(self, controls: Controls) -> Proof:
        self.targets = tuple(node_selectors.select_running(controls, self.arguments))
        first = run_on_all(lambda node: controls.throttle_cpu(node, self.cpus), self.targets)
        least = {state.node: state.throttled + THROTTLED_PERIODS for state in first}
        after = run_on_all(
            lambda node: _await_throttling(controls, node, least[node]), self.targets
        )
        acted = bool(after) and all(self._acts(state, least[state.node]) for state in after)
        return Proof(acted=acted, text="; ".join(map(_describe_limits, after)))

    def heal(self, controls: Controls) -> str:
        return "; ".join(map(_describe_limits, run_on_all(controls.restore_cpu, self.targets)))

    def find_residual_effects(self, controls: Controls) -> str:
        now = run_on_all(controls.cpu_throttling, self.targets)
        return "; ".join(_describe_limits(state) for state in now if state.cpus is not None)

    def _acts(self, limits: Limits, least: int) -> bool:
        limited = math.isclose(limits.cpus or 0.0, self.cpus, abs_tol=1e-5)
        return limited and limits.throttled >= least


def _await_throttling(controls: Controls, node: str, least: int) -> Limits:
    """The node's limits after `least` throttled periods. Requests keep the node busy meanwhile."""
    links = [link for link in controls.net.links() if link.dst == node]

    def read_under_load() -> Limits:
        for link in links[:1]:
            controls.net.measure_transfer(link, request_count=REQUESTS, timeout_s=1.0)
        return controls.cpu_throttling(node)

    return until(
        read_under_load, lambda now: now.throttled >= least, deadline_s=DEADLINE_S, poll_s=0.0
    )


def _describe_limits(limits: Limits) -> str:
    cpus = "all processors" if limits.cpus is None else f"{limits.cpus:g} processors"
    return f"{limits.node}: {cpus}, throttled in {limits.throttled} of {limits.periods} periods"
