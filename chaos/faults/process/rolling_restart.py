"""Brokers restart one after another, each when the cluster is healthy again."""

from __future__ import annotations

from urteil.chaos import node_selectors
from urteil.chaos.controls import Controls
from urteil.chaos.effects import Effect
from urteil.chaos.fault_options import flag, number
from urteil.chaos.faults.base.fault import Fault, Proof, describe_stopped_nodes, was_killed


class RollingRestart(Fault):
    """Stops and starts broker by broker. Proof: every process id ended and a new one serves."""

    name = "rolling_restart"
    about = "restart brokers one by one, and wait for full ISRs in between"
    effects = frozenset({Effect.STOPS_NODES, Effect.RESTARTS_NODES})
    proves = "every process id ended, and a new one serves"
    sample = "controller"
    expiry_s = 600.0
    kill: bool = flag("SIGKILL instead of SIGTERM")
    deadline_s: float = number(
        60.0, "time for the cluster to be healthy before the next restart", unit="s", least=0
    )

    killed = False

    def injected_effects(self) -> frozenset[Effect]:
        end = Effect.KILLS_NODES if self.kill or self.killed else Effect.STOPS_NODES
        return frozenset({end, Effect.RESTARTS_NODES})

    def begin(self, controls: Controls) -> Proof:
        self.targets = tuple(node_selectors.select_running(controls, self.arguments))
        texts, acted = [], True
        for node in self.targets:
            old = controls.status(node).pid
            ended = controls.kill(node) if self.kill else controls.stop(node)
            self.killed |= was_killed(ended)
            new = controls.start(node).pid
            acted = acted and new != old
            texts.append(f"{node}: pid {old} ended, exit {ended.exit_code}, now {new}")
            controls.await_healthy(deadline_s=self.deadline_s)
        return Proof(acted=acted, text="; ".join(texts))

    def heal(self, controls: Controls) -> str:
        for node in self.targets:
            controls.start(node)
        return f"{len(self.targets)} brokers run"

    def find_residual_effects(self, controls: Controls) -> str:
        return describe_stopped_nodes(controls, self.targets)
