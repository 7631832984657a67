"""What disk faults share: brokers that may end by them, and are started anew at healing."""

from __future__ import annotations

from typing import ClassVar

from urteil.chaos import node_selectors
from urteil.chaos.controls import Controls
from urteil.chaos.faults.fault import (
    KAFKA,
    MIX,
    URTEIL,
    Fault,
    Proof,
    describe_stopped_nodes,
    run_on_all,
)
from urteil.chaos.observations import NodeState, NodeStatus


class LiveDiskFault(Fault):
    """A disk that turns bad under a broker that runs. A broker that loses its only log directory
    ends; one that lives on is ended at healing, since it takes no directory back while it runs."""

    family = "disk"
    on_targets: ClassVar[tuple[str, ...]] = (URTEIL, KAFKA, MIX)

    def hurt(self, controls: Controls, node: str) -> tuple[bool, str]:
        """Do it to one broker: whether it acts, and what showed it."""
        raise NotImplementedError

    def mend(self, controls: Controls, node: str) -> None:
        """Undo it; the broker is dead."""

    hurting = False

    def begin(self, controls: Controls) -> Proof:
        self.hurting = True
        victims = self.targets = tuple(node_selectors.select_running(controls, self.arguments))
        for node in victims:
            controls.allow_exit(node)
        told = run_on_all(lambda node: self.hurt(controls, node), victims)
        acted = all(one for one, _ in told)
        return Proof(acted=acted, text="; ".join(text for _, text in told))

    def heal(self, controls: Controls) -> str:
        if not self.hurting:
            return "healed before"
        ended = run_on_all(lambda node: self._ended(controls, node), self.targets)
        for node in self.targets:
            self.mend(controls, node)
        started = run_on_all(controls.start, self.targets)
        self.hurting = False
        pairs = zip(ended, started, strict=True)
        return ", ".join(f"{_told(old)}, now pid {new.pid}" for old, new in pairs)

    def find_residual_effects(self, controls: Controls) -> str:
        return describe_stopped_nodes(controls, self.targets)

    def _ended(self, controls: Controls, node: str) -> NodeStatus:
        now = controls.status(node)
        return now if now.state is NodeState.DEAD else controls.kill(node)


def _told(status: NodeStatus) -> str:
    code = status.exit_code
    return f"{status.node} {'was ended' if code == -9 else f'had ended with {code}'}"
