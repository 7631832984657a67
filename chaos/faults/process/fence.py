"""A broker is paused until its session has ended, and continues as an expelled one."""

from __future__ import annotations

from collections.abc import Sequence
from operator import not_

from urteil.chaos import node_selectors
from urteil.chaos.controls import Controls
from urteil.chaos.faults.base.fault import Proof, describe_stopped_nodes
from urteil.chaos.faults.process.pause import Pause
from urteil.chaos.node_selectors import NoTarget
from urteil.chaos.waiting import until

FENCED_S = 20.0
REGISTERED_S = 20.0
POLL_S = 0.05


class Fence(Pause):
    """Pauses brokers until the metadata no longer lists them: KRaft's controller fenced them, or
    their ZooKeeper sessions expired. A fenced broker leads nothing and is in no ISR. When it
    continues, it does not know that. Healing waits until it is listed again."""

    name = "fence"
    about = "SIGSTOP of a broker until its session ended, SIGCONT at healing"
    proves = (
        "the kernel reports the process as stopped, and the metadata no longer lists the broker"
    )
    selectors = "a role or a node: brokers"

    def begin(self, controls: Controls) -> Proof:
        chosen = node_selectors.select_running(controls, self.arguments)
        if strangers := [node for node in chosen if node not in controls.brokers]:
            raise NoTarget(f"{', '.join(strangers)} is not a broker and has no session")
        proof = super().begin(controls)
        listed = until(
            lambda: _registered_nodes(controls, self.targets),
            not_,
            deadline_s=FENCED_S,
            poll_s=POLL_S,
        )
        if listed:
            text = f"{proof.text}; after {FENCED_S:g} s {', '.join(listed)} is not fenced"
            return Proof(acted=False, text=text)
        return Proof(acted=proof.acted, text=f"{proof.text}; fenced: {', '.join(self.targets)}")

    def heal(self, controls: Controls) -> str:
        text = super().heal(controls)
        absent = until(lambda: self._absent(controls), not_, deadline_s=REGISTERED_S, poll_s=POLL_S)
        return f"{text}; {f'still fenced: {absent}' if absent else 'no longer fenced'}"

    def find_residual_effects(self, controls: Controls) -> str:
        return describe_stopped_nodes(controls, self.targets) or self._absent(controls)

    def _absent(self, controls: Controls) -> str:
        listed = _registered_nodes(controls, self.targets)
        return ", ".join(node for node in self.targets if node not in listed)


def _registered_nodes(controls: Controls, nodes: Sequence[str]) -> list[str]:
    registered = controls.registered_brokers()
    return [node for node in nodes if node in registered]
