"""A broker is drained and stopped; healing starts it and restores its replicas."""

from __future__ import annotations

from urteil.chaos import node_selectors
from urteil.chaos.controls import Controls
from urteil.chaos.effects import Effect
from urteil.chaos.faults.base.broker_drain import FormerReplicas, count_in_sync, drain, reassign
from urteil.chaos.faults.base.fault import Fault, Proof, describe_stopped_nodes
from urteil.chaos.observations import NodeState


class RemoveBroker(Fault):
    """Reassigns all replicas, then sends SIGTERM. Healing starts the broker and restores its
    replicas."""

    name = "remove_broker"
    about = "move all replicas off a broker and stop it; start it and restore them at healing"
    effects = frozenset({Effect.STOPS_NODES, Effect.MOVES_REPLICAS})
    proves = "no partition in ZooKeeper has a replica on the broker, and its process ended"
    sample = "controller"
    expiry_s = 600.0
    _before: FormerReplicas | None = None

    def begin(self, controls: Controls) -> Proof:
        (node,) = self.targets = (node_selectors.select_nodes(controls, self.arguments)[0],)
        had = count_in_sync(controls, node)
        self._before = drain(controls, node)
        left = count_in_sync(controls, node)
        ended = controls.stop(node)
        acted = had > 0 and left == 0 and ended.state is NodeState.DEAD
        text = f"{node}: {had} replicas before, {left} after, stopped with exit {ended.exit_code}"
        return Proof(acted=acted, text=text)

    def heal(self, controls: Controls) -> str:
        for node in self.targets:
            controls.start(node)
        if self._before is not None:
            reassign(controls, self._before)
        return "; ".join(
            f"{node} runs with {count_in_sync(controls, node)} replicas" for node in self.targets
        )

    def find_residual_effects(self, controls: Controls) -> str:
        return describe_stopped_nodes(controls, self.targets)
