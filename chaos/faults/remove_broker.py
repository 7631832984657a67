"""Take a broker out of service in an orderly way, and back."""

from __future__ import annotations

from urteil.chaos import node_selectors
from urteil.chaos.controls import Controls
from urteil.chaos.faults.broker_drain import Before, drain, held, move
from urteil.chaos.faults.fault import Fault, Proof, describe_stopped_nodes
from urteil.chaos.observations import NodeState


class RemoveBroker(Fault):
    """Reassignment, then SIGTERM; healing starts it and gives it back what it held."""

    name = "remove_broker"
    about = "reassign everything away from a broker and stop it; start it and move it back"
    family = "administration"
    proves = "no partition in ZooKeeper is on the broker, and its process ended"
    sample = "controller"
    expiry_s = 600.0
    _before: Before | None = None

    def begin(self, controls: Controls) -> Proof:
        (node,) = self.targets = (node_selectors.select_nodes(controls, self.arguments)[0],)
        had = held(controls, node)
        self._before = drain(controls, node)
        left = held(controls, node)
        ended = controls.stop(node)
        acted = had > 0 and left == 0 and ended.state is NodeState.DEAD
        text = f"{node}: {had} replicas before, {left} after, stopped with exit {ended.exit_code}"
        return Proof(acted=acted, text=text)

    def heal(self, controls: Controls) -> str:
        for node in self.targets:
            controls.start(node)
        if self._before is not None:
            move(controls, self._before)
        return "; ".join(
            f"{node} runs with {held(controls, node)} replicas" for node in self.targets
        )

    def find_residual_effects(self, controls: Controls) -> str:
        return describe_stopped_nodes(controls, self.targets)
