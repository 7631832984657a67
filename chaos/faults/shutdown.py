"""SIGTERM and a start at healing: a controlled shutdown, leadership handed over before."""

from __future__ import annotations

from urteil.chaos.controls import Controls
from urteil.chaos.faults.crash import Crash
from urteil.chaos.observations import NodeStatus


class Shutdown(Crash):
    """End processes politely; proof: their pids are gone, with the exit codes they left by."""

    name = "shutdown"
    about = "SIGTERM of a node (controlled shutdown), started again at healing"
    proves = "the process id is gone, with its exit code; after healing another one serves"
    gone = "ended"

    def end(self, controls: Controls, node: str) -> NodeStatus:
        return controls.stop(node)
