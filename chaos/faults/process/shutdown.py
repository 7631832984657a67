"""A node is stopped by SIGTERM (controlled shutdown) and starts again at healing."""

from __future__ import annotations

from urteil.chaos.controls import Controls
from urteil.chaos.effects import Effect
from urteil.chaos.faults.process.crash import Crash
from urteil.chaos.observations import NodeStatus


class Shutdown(Crash):
    """Stops processes in order. Proof: their process ids no longer exist, and their exit codes."""

    name = "shutdown"
    about = "SIGTERM of a node (controlled shutdown), started again at healing"
    effects = frozenset({Effect.STOPS_NODES})
    proves = (
        "the process id is gone, with its exit code; after healing the node serves under another"
    )
    ended_as = "ended"

    def end(self, controls: Controls, node: str) -> NodeStatus:
        return controls.stop(node)

    def injected_effects(self) -> frozenset[Effect]:
        """A shutdown that took too long ended with SIGKILL."""
        return frozenset({Effect.KILLS_NODES}) if self.killed else self.effects
