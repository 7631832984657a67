"""SIGSTOP and SIGCONT: a node falls silent, keeps its connections, and wakes with old views."""

from __future__ import annotations

from urteil.chaos import selectors
from urteil.chaos.controls import Controls
from urteil.chaos.faults.base import Fault, Proof, not_running, together
from urteil.chaos.views import NodeState


class Pause(Fault):
    """Stop every thread of a process; proof: the process state as the system tells it."""

    name = "pause"
    about = "SIGSTOP of a node, SIGCONT at healing"
    family = "process"
    proves = "the process state is stopped as the system tells it; after healing it runs"

    def begin(self, controls: Controls) -> Proof:
        victims = self.targets = tuple(
            selectors.victims(controls, selectors.nodes(controls, self.aim))
        )
        together(controls.pause, victims)
        stopped = [s for s in map(controls.status, victims) if s.state is NodeState.PAUSED]
        text = ", ".join(f"{s.node}: pid {s.pid} is stopped" for s in stopped)
        return Proof(acted=bool(stopped) and len(stopped) == len(victims), text=text)

    def heal(self, controls: Controls) -> str:
        for node in self.targets:
            if controls.status(node).state is NodeState.PAUSED:
                controls.resume(node)
        return ", ".join(f"{node} is {controls.status(node).state.value}" for node in self.targets)

    def remains(self, controls: Controls) -> str:
        return not_running(controls, self.targets)
