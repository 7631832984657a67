"""A rolling upgrade: newer code first, then the newer inter-broker protocol."""

from __future__ import annotations

from urteil.chaos import node_selectors
from urteil.chaos.controls import Controls
from urteil.chaos.effects import Effect
from urteil.chaos.fault_options import number
from urteil.chaos.faults.base.fault import WITH_ZOOKEEPER, Fault, Proof, describe_stopped_nodes

STEPS = (1, 2)


class Upgrade(Fault):
    """Stops each broker and starts it as the next release, one by one, when the cluster is healthy.
    The cluster must have started as the previous release (`ClusterSpec.older`).
    """

    name = "upgrade"
    about = "rolling upgrade of all brokers from the previous release, in two steps"
    effects = frozenset({Effect.STOPS_NODES, Effect.RESTARTS_NODES, Effect.CHANGES_RELEASE})
    proves = "every process id ended, and the release of every broker before and after"
    sample = ""
    expiry_s = 1800.0
    on_targets = WITH_ZOOKEEPER
    deadline_s: float = number(
        90.0, "time until the cluster must be healthy again", unit="s", least=0
    )

    def begin(self, controls: Controls) -> Proof:
        self.targets = tuple(node_selectors.select_nodes(controls, self.arguments))
        before = {node: controls.admin.release(node) for node in self.targets}
        pids = {node: controls.status(node).pid for node in self.targets}
        for step in STEPS:
            for node in self.targets:
                self._restart(controls, node, step)
        after = {node: controls.admin.release(node) for node in self.targets}
        texts = [f"{node}: {before[node]}, then {after[node]}" for node in self.targets]
        acted = bool(texts) and all(
            before[node] != after[node] and controls.status(node).pid != pids[node]
            for node in self.targets
        )
        return Proof(acted=acted, text="; ".join(texts))

    def _restart(self, controls: Controls, node: str, step: int) -> None:
        controls.stop(node)
        controls.admin.upgrade(node, step=step)
        controls.start(node)
        controls.await_healthy(deadline_s=self.deadline_s)

    def heal(self, controls: Controls) -> str:
        for node in self.targets:
            controls.start(node)
        return f"{len(self.targets)} brokers run"

    def find_residual_effects(self, controls: Controls) -> str:
        return describe_stopped_nodes(controls, self.targets)
