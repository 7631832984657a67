"""A node is stopped by SIGSTOP, keeps its connections, and continues with stale state."""

from __future__ import annotations

from urteil.chaos import node_selectors
from urteil.chaos.controls import Controls
from urteil.chaos.effects import Effect
from urteil.chaos.faults.base.fault import Fault, Proof, describe_stopped_nodes
from urteil.chaos.observations import NodeState
from urteil.chaos.parallel import run_on_all


class Pause(Fault):
    """Stops every thread of a process. Proof: the process state that the kernel reports."""

    name = "pause"
    about = "SIGSTOP of a node, SIGCONT at healing"
    effects = frozenset({Effect.PAUSES_NODES})
    proves = "the kernel reports the process as stopped; after healing as running"

    def begin(self, controls: Controls) -> Proof:
        victims = self.targets = tuple(node_selectors.select_running(controls, self.arguments))
        run_on_all(controls.pause, victims)
        stopped = [s for s in map(controls.status, victims) if s.state is NodeState.PAUSED]
        text = ", ".join(f"{s.node}: pid {s.pid} is stopped" for s in stopped)
        return Proof(acted=bool(stopped) and len(stopped) == len(victims), text=text)

    def heal(self, controls: Controls) -> str:
        for node in self.targets:
            if controls.status(node).state is NodeState.PAUSED:
                controls.resume(node)
        return ", ".join(f"{node} is {controls.status(node).state.value}" for node in self.targets)

    def find_residual_effects(self, controls: Controls) -> str:
        return describe_stopped_nodes(controls, self.targets)
