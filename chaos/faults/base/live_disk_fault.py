"""The base class of faults that damage the disk of a running broker."""

from __future__ import annotations

from typing import ClassVar

from urteil.chaos import node_selectors
from urteil.chaos.controls import Controls
from urteil.chaos.faults.base.fault import (
    ON_THIS_MACHINE,
    STARTED_BY_LAB,
    Fault,
    Proof,
    describe_stopped_nodes,
)
from urteil.chaos.observations import NodeState, NodeStatus
from urteil.chaos.parallel import run_on_all


class LiveDiskFault(Fault):
    """A disk that fails while its broker runs.

    A broker that loses its only log directory exits. Healing ends a broker that survived, because
    a running broker does not use a failed directory again.
    """

    on_targets: ClassVar[tuple[str, ...]] = STARTED_BY_LAB
    on_runtimes: ClassVar[tuple[str, ...]] = ON_THIS_MACHINE

    def damage_disk(self, controls: Controls, node: str) -> tuple[bool, str]:
        """Damage the disk of one broker. Returns whether it acted, and the proof."""
        raise NotImplementedError

    def repair_disk(self, controls: Controls, node: str) -> None:
        """Undo the damage while the broker is dead."""

    is_active = False

    def begin(self, controls: Controls) -> Proof:
        self.is_active = True
        victims = self.targets = tuple(node_selectors.select_running(controls, self.arguments))
        for node in victims:
            controls.allow_exit(node)
        results = run_on_all(lambda node: self.damage_disk(controls, node), victims)
        acted = all(acts for acts, _ in results)
        return Proof(acted=acted, text="; ".join(text for _, text in results))

    def heal(self, controls: Controls) -> str:
        if not self.is_active:
            return "already healed"
        ended = run_on_all(lambda node: self._end(controls, node), self.targets)
        for node in self.targets:
            self.repair_disk(controls, node)
        started = run_on_all(controls.start, self.targets)
        self.is_active = False
        pairs = zip(ended, started, strict=True)
        return ", ".join(f"{_describe_end(old)}, now pid {new.pid}" for old, new in pairs)

    def find_residual_effects(self, controls: Controls) -> str:
        return describe_stopped_nodes(controls, self.targets)

    def _end(self, controls: Controls, node: str) -> NodeStatus:
        now = controls.status(node)
        return now if now.state is NodeState.DEAD else controls.kill(node)


def _describe_end(status: NodeStatus) -> str:
    code = status.exit_code
    return f"{status.node} {'was ended' if code == -9 else f'had ended with {code}'}"
