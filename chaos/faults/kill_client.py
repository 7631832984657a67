"""SIGKILL of a client; a new session takes over at healing, unless nobody shall."""

from __future__ import annotations

import signal
from typing import ClassVar

from urteil.chaos.client_selectors import SELECTORS, select_clients
from urteil.chaos.controls import Controls
from urteil.chaos.faults.fault import Fault, Proof
from urteil.chaos.observations import NodeState


class KillClient(Fault):
    """Kill clients in the middle of what they do: their open calls stay unknown for ever. Those
    that are killed `for_good` have no successor that would end what they began."""

    name = "kill_client"
    about = "SIGKILL of a producer, a reader or a group member; a new session takes over"
    family = "clients"
    proves = "the process id is gone; after healing another session of the client runs"
    selectors = SELECTORS
    options: ClassVar[dict[str, str]] = {"for_good": "nobody takes over"}
    sample = ""

    def begin(self, controls: Controls) -> Proof:
        self.targets = tuple(select_clients(controls.clients, self.arguments))
        pids = {name: controls.clients.status(name).pid for name in self.targets}
        after = [controls.clients.kill(name) for name in self.targets]
        gone = [status for status in after if status.exit_code == -signal.SIGKILL]
        text = ", ".join(f"{s.node}: pid {pids[s.node]} gone, exit {s.exit_code}" for s in gone)
        return Proof(acted=len(gone) == len(self.targets), text=text or "nobody ran")

    def heal(self, controls: Controls) -> str:
        if self.arguments.flag("for_good"):
            return f"nobody takes over from {', '.join(self.targets)}"
        successors = [controls.clients.start_next_session(name) for name in self.targets]
        return f"{', '.join(successors)} took over"

    def find_residual_effects(self, controls: Controls) -> str:
        if self.arguments.flag("for_good"):
            return ""
        nexts = [controls.clients.start_next_session(name) for name in self.targets]
        dead = [n for n in nexts if controls.clients.status(n).state is not NodeState.RUNNING]
        return f"{', '.join(dead)} does not run" if dead else ""
