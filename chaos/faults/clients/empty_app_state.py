"""A process of an application is killed and loses its state stores; it must restore them."""

from __future__ import annotations

import signal

from urteil.chaos.client_selectors import SELECTORS, select_clients
from urteil.chaos.controls import Controls
from urteil.chaos.faults.base.fault import Proof
from urteil.chaos.faults.clients.kill_client import KillClient


class EmptyAppState(KillClient):
    """Kills processes of an application and removes the files of their stores, as on a machine that
    is replaced. The next session begins with empty stores, which the application restores from its
    topics."""

    name = "empty_app_state"
    about = "kill a process of an application and empty its stores; it starts again at healing"
    proves = "the process id is gone, and files of stores were removed; after healing it runs"
    selectors = SELECTORS
    sample = ""

    def begin(self, controls: Controls) -> Proof:
        self.targets = tuple(select_clients(controls.clients, self.arguments))
        acted, texts = True, []
        for name in self.targets:
            status = controls.clients.kill(name)
            removed = controls.clients.empty_stores(name)
            acted = acted and status.exit_code == -signal.SIGKILL and bool(removed)
            texts.append(f"{name}: exit {status.exit_code}, {len(removed)} files of stores removed")
        return Proof(acted=acted and bool(texts), text=", ".join(texts) or "no process ran")
