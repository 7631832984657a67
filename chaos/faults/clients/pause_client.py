"""A client is stopped by SIGSTOP beyond its session timeout, and continues with stale state."""

from __future__ import annotations

from urteil.chaos.client_selectors import SELECTORS, select_clients
from urteil.chaos.controls import Controls
from urteil.chaos.effects import Effect
from urteil.chaos.faults.base.fault import Fault, Proof
from urteil.chaos.node_selectors import NoTarget
from urteil.chaos.observations import NodeState


class PauseClient(Fault):
    """Stops every thread of a client. A group member that continues after its session timeout is a
    zombie: the group continued without it, and the member does not know."""

    name = "pause_client"
    listed_after = "ring"
    about = "SIGSTOP of a producer, a reader or a group member, SIGCONT at healing"
    effects = frozenset({Effect.PAUSES_CLIENTS})
    proves = "the process state that the kernel reports"
    selectors = SELECTORS
    sample = ""

    def begin(self, controls: Controls) -> Proof:
        chosen = select_clients(controls.clients, self.arguments)
        states = {name: controls.clients.status(name).state for name in chosen}
        self.targets = tuple(name for name in chosen if states[name] is NodeState.RUNNING)
        if not self.targets:
            raise NoTarget(f"{', '.join(chosen)}: no client runs")
        after = [controls.clients.pause(name) for name in self.targets]
        stopped = [status for status in after if status.state is NodeState.PAUSED]
        text = ", ".join(f"{s.node}: pid {s.pid} is stopped" for s in stopped)
        return Proof(acted=len(stopped) == len(self.targets), text=text)

    def heal(self, controls: Controls) -> str:
        after = [controls.clients.resume(name) for name in self.targets]
        return ", ".join(f"{status.node} is {status.state.value}" for status in after)

    def find_residual_effects(self, controls: Controls) -> str:
        states = [controls.clients.status(name) for name in self.targets]
        return ", ".join(f"{s.node} is paused" for s in states if s.state is NodeState.PAUSED)
