"""A client's next session starts while the client still runs: two clients with one identity."""

from __future__ import annotations

from urteil.chaos.client_selectors import SELECTORS, select_clients
from urteil.chaos.controls import Controls
from urteil.chaos.effects import Effect
from urteil.chaos.faults.base.fault import Fault, Proof
from urteil.chaos.observations import NodeState


class SecondSession(Fault):
    """Starts the next session of running or paused clients. A transactional client's next session
    has its transactional id. Healing kills the older session."""

    name = "second_session"
    about = "start a client's next session beside it, with the same transactional id"
    effects = frozenset({Effect.DOUBLES_CLIENTS})
    proves = "both processes exist, and the new one runs"
    selectors = SELECTORS
    sample = ""

    def begin(self, controls: Controls) -> Proof:
        self.targets = tuple(select_clients(controls.clients, self.arguments))
        sessions = [controls.clients.start_next_session(name) for name in self.targets]
        both = [controls.clients.status(name) for name in (*self.targets, *sessions)]
        alive = [process for process in both if process.state is not NodeState.DEAD]
        text = ", ".join(
            f"{process.node} is {process.state.value} as pid {process.pid}" for process in alive
        )
        new_run = all(controls.clients.status(n).state is NodeState.RUNNING for n in sessions)
        return Proof(acted=new_run and len(alive) == len(both), text=text or "no client ran")

    def heal(self, controls: Controls) -> str:
        for name in self.targets:
            if controls.clients.status(name).state is not NodeState.DEAD:
                controls.clients.kill(name)
        return f"{', '.join(self.targets)} is gone"

    def find_residual_effects(self, controls: Controls) -> str:
        states = [controls.clients.status(name) for name in self.targets]
        return ", ".join(f"{s.node} runs" for s in states if s.state is not NodeState.DEAD)
