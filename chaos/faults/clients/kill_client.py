"""A client is killed by SIGKILL; healing starts its next session."""

from __future__ import annotations

import signal

from urteil.chaos.client_selectors import SELECTORS, select_clients
from urteil.chaos.controls import Controls
from urteil.chaos.effects import Effect
from urteil.chaos.fault_options import flag
from urteil.chaos.faults.base.fault import Fault, Proof
from urteil.chaos.observations import NodeState


class KillClient(Fault):
    """Kills clients in the middle of their operations, whose outcome then stays unknown. With
    `for_good` no next session starts, so no client ends what the killed one began."""

    name = "kill_client"
    about = "kill a producer, a reader or a group member; its next session starts at healing"
    effects = frozenset({Effect.KILLS_CLIENTS})
    proves = "the process id is gone; after healing the client's next session runs"
    selectors = SELECTORS
    for_good: bool = flag("start no next session")
    sample = ""

    def begin(self, controls: Controls) -> Proof:
        self.targets = tuple(select_clients(controls.clients, self.arguments))
        pids = {name: controls.clients.status(name).pid for name in self.targets}
        after = [controls.clients.kill(name) for name in self.targets]
        dead = [status for status in after if status.exit_code == -signal.SIGKILL]
        text = ", ".join(f"{s.node}: pid {pids[s.node]} gone, exit {s.exit_code}" for s in dead)
        return Proof(acted=len(dead) == len(self.targets), text=text or "no client ran")

    def heal(self, controls: Controls) -> str:
        if self.for_good:
            return f"{', '.join(self.targets)} has no next session"
        sessions = [controls.clients.start_next_session(name) for name in self.targets]
        return f"{', '.join(sessions)} started"

    def find_residual_effects(self, controls: Controls) -> str:
        if self.for_good:
            return ""
        sessions = [controls.clients.start_next_session(name) for name in self.targets]
        dead = [n for n in sessions if controls.clients.status(n).state is not NodeState.RUNNING]
        return f"{', '.join(dead)} does not run" if dead else ""
