"""SIGSTOP and SIGCONT: a node falls silent, keeps its connections, and wakes with old views."""

from __future__ import annotations

from urteil.chaos import node_selectors
from urteil.chaos.controls import Controls
from urteil.chaos.faults.fault import Fault, Proof, describe_stopped_nodes, run_on_all
from urteil.chaos.observations import NodeState


class Pause(Fault):
    """Stop every thread of a process; proof: the process state as the system tells it."""

    name = "pause"
    about = "SIGSTOP of a node, SIGCONT at healing"
    family = "process"
    proves = "the process state is stopped as the system tells it; after healing it runs"

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
