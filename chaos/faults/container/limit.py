"""A running node gets little processor time or memory, by its control group."""

from __future__ import annotations

import math

from urteil.chaos import node_selectors
from urteil.chaos.controls import Controls
from urteil.chaos.effects import Effect
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.fault_options import number, whole_number
from urteil.chaos.faults.base.fault import (
    DOCKER,
    WITH_ZOOKEEPER,
    Fault,
    Proof,
)
from urteil.chaos.observations import Limits
from urteil.chaos.parallel import run_on_all

CPUS = 0.1


class Limit(Fault):
    """The limits of a container's control group, changed while it runs. The kernel kills a node
    that needs more memory than it has. That is a crash that healing does not end with a start, so
    `memory_mb` is for nodes that can live with less."""

    name = "limit"
    about = "limit the processor time and memory of a node's container while it runs"
    effects = frozenset({Effect.STARVES_NODES, Effect.LIMITS_MEMORY})
    proves = "the limits that the container engine reports before, during and after the fault"
    on_runtimes = (DOCKER,)
    on_targets = WITH_ZOOKEEPER
    cpus: float | None = number(
        None,
        f"processors a node may use; {CPUS} without memory_mb, else as before",
        most=1024,
        least=0,
    )
    memory_mb: int | None = whole_number(
        None, "memory a node may use, 16 at least; by default as before", unit="MB", least=0
    )

    def __init__(self, arguments: FaultArguments) -> None:
        super().__init__(arguments)
        self.memory_mb = self.memory_mb or None
        if self.cpus is None and self.memory_mb is None:
            self.cpus = CPUS
        self.cpus = self.cpus or None
        if self.cpus is not None and self.cpus < 0.01:
            raise ValueError(f"cpus={self.cpus} is not between 0.01 and 1024")
        if self.memory_mb is not None and self.memory_mb < 16:
            raise ValueError(f"memory_mb={self.memory_mb} is below 16")

    def injected_effects(self) -> frozenset[Effect]:
        limits = {Effect.STARVES_NODES: self.cpus, Effect.LIMITS_MEMORY: self.memory_mb}
        return frozenset(effect for effect, limit in limits.items() if limit is not None)

    def begin(self, controls: Controls) -> Proof:
        boxes = controls.containers
        self.targets = tuple(node_selectors.select_running(controls, self.arguments))
        before = dict(zip(self.targets, run_on_all(boxes.limits, self.targets), strict=True))
        after = run_on_all(
            lambda node: boxes.limit(node, cpus=self.cpus, memory_mb=self.memory_mb), self.targets
        )
        acted = bool(after) and all(self._acts(limits) for limits in after)
        text = "; ".join(
            f"{limits.node}: {before[limits.node]} before, {limits} now" for limits in after
        )
        return Proof(acted=acted, text=text)

    def heal(self, controls: Controls) -> str:
        after = run_on_all(controls.containers.unlimit, self.targets)
        return "; ".join(f"{limits.node}: {limits}" for limits in after)

    def find_residual_effects(self, controls: Controls) -> str:
        now = run_on_all(controls.containers.limits, self.targets)
        return "; ".join(
            f"{limits.node}: {limits}"
            for limits in now
            if (limits.cpus, limits.memory_mb) != (None, None)
        )

    def _acts(self, limits: Limits) -> bool:
        """Whether the limit shows, to the microsecond in which an engine counts processors; a
        period has 100,000."""
        cpus = self.cpus is None or math.isclose(limits.cpus or 0.0, self.cpus, abs_tol=1e-5)
        return cpus and (self.memory_mb is None or limits.memory_mb == self.memory_mb)
