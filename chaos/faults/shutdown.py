"""SIGTERM and a start at healing: a controlled shutdown, leadership handed over before."""

from __future__ import annotations

from urteil.chaos import selectors
from urteil.chaos.controls import Controls, NodeState
from urteil.chaos.faults.base import Fault, Proof, not_running, together


class Shutdown(Fault):
    """End processes politely; proof: their pids are gone, with the exit codes they left by."""

    name = "shutdown"
    about = "SIGTERM of a node (controlled shutdown), started again at healing"
    family = "process"
    proves = "the process id is gone, with its exit code; after healing another one serves"

    def begin(self, controls: Controls) -> Proof:
        self.targets = tuple(selectors.nodes(controls, self.aim))
        victims = selectors.victims(controls, self.targets)
        pids = {node: controls.status(node).pid for node in victims}
        after = together(controls.stop, victims)
        gone = [status for status in after if status.state is NodeState.DEAD]
        text = ", ".join(f"{s.node}: pid {pids[s.node]} ended, exit {s.exit_code}" for s in gone)
        return Proof(acted=bool(gone) and len(gone) == len(victims), text=text)

    def heal(self, controls: Controls) -> str:
        started = together(controls.start, self.targets)
        return ", ".join(f"{status.node} runs as pid {status.pid}" for status in started)

    def remains(self, controls: Controls) -> str:
        return not_running(controls, self.targets)
