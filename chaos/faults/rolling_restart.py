"""Restart brokers one after another, each only when the cluster is whole again."""

from __future__ import annotations

from typing import ClassVar

from urteil.chaos import selectors
from urteil.chaos.controls import Controls
from urteil.chaos.faults.base import Fault, Proof, not_running


class RollingRestart(Fault):
    """SIGTERM and start, broker by broker; proof: every pid ended and another took its place."""

    name = "rolling_restart"
    about = "controlled restart of brokers, one by one, waiting for full ISRs in between"
    family = "process"
    proves = "every process id ended, and another took its place"
    sample = "controller"
    expiry_s = 600.0
    options: ClassVar[dict[str, str]] = {
        "kill": "SIGKILL instead of SIGTERM",
        "deadline_s": "for the cluster to be whole before the next (default 60)",
    }

    def begin(self, controls: Controls) -> Proof:
        self.targets = tuple(selectors.victims(controls, selectors.nodes(controls, self.aim)))
        told, acted = [], True
        for node in self.targets:
            old = controls.status(node).pid
            ended = controls.kill(node) if self.aim.flag("kill") else controls.stop(node)
            new = controls.start(node).pid
            acted = acted and new != old
            told.append(f"{node}: pid {old} ended, exit {ended.exit_code}, now {new}")
            controls.await_healthy(deadline_s=self.aim.number("deadline_s", 60))
        return Proof(acted=acted, text="; ".join(told))

    def heal(self, controls: Controls) -> str:
        for node in self.targets:
            controls.start(node)
        return f"{len(self.targets)} brokers run"

    def remains(self, controls: Controls) -> str:
        return not_running(controls, self.targets)
