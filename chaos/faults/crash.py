"""SIGKILL, and a start at healing: memory is gone, the disk stays."""

from __future__ import annotations

from urteil.chaos import node_selectors
from urteil.chaos.controls import Controls
from urteil.chaos.faults.fault import Fault, Proof, describe_stopped_nodes, run_on_all
from urteil.chaos.observations import NodeState, NodeStatus


class Crash(Fault):
    """Kill processes without warning; proof: their pids are gone."""

    name = "crash"
    about = "SIGKILL of a node, started again at healing"
    family = "process"
    proves = "the process id is gone; after healing another one serves"
    gone = "gone"

    def end(self, controls: Controls, node: str) -> NodeStatus:
        """End one node in this fault's way."""
        return controls.kill(node)

    def begin(self, controls: Controls) -> Proof:
        victims = self.targets = tuple(node_selectors.select_running(controls, self.arguments))
        pids = {node: controls.status(node).pid for node in victims}
        after = run_on_all(lambda node: self.end(controls, node), victims)
        dead = [status for status in after if status.state is NodeState.DEAD]
        told = [f"{s.node}: pid {pids[s.node]} {self.gone}, exit {s.exit_code}" for s in dead]
        return Proof(acted=bool(dead) and len(dead) == len(victims), text=", ".join(told))

    def heal(self, controls: Controls) -> str:
        started = run_on_all(controls.start, self.targets)
        return ", ".join(f"{status.node} runs as pid {status.pid}" for status in started)

    def find_residual_effects(self, controls: Controls) -> str:
        return describe_stopped_nodes(controls, self.targets)
