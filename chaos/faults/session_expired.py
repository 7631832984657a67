"""A broker's ZooKeeper session ends while the broker runs."""

from __future__ import annotations

import time

from urteil.chaos import node_selectors
from urteil.chaos.controls import Controls
from urteil.chaos.faults.fault import KAFKA, MIX, URTEIL, Fault, Proof, run_on_all

DEADLINE_S = 5.0
ATTEMPTS = 50
REGISTERED_S = 5.0
POLL_S = 0.05


class SessionExpired(Fault):
    """Closes brokers' sessions by id and password, with the same effect as their expiry.

    ZooKeeper removes their registrations, and `/controller` if one of them is the controller.
    Healing waits until the brokers are registered again.
    """

    name = "session_expired"
    about = "end a broker's ZooKeeper session: its ephemeral znodes vanish while it runs"
    family = "zookeeper"
    proves = "the session no longer holds the broker's registration"
    on_targets = (URTEIL, KAFKA, MIX)
    sample = "controller"

    def begin(self, controls: Controls) -> Proof:
        self.targets = tuple(node_selectors.select_nodes(controls, self.arguments))
        before = {node: controls.zookeeper_admin.session(node) for node in self.targets}
        results = run_on_all(lambda node: _expire(controls, node, before[node]), self.targets)
        acted = bool(results) and all(ended for ended, _ in results)
        return Proof(acted=acted, text="; ".join(text for _, text in results))

    def heal(self, controls: Controls) -> str:
        deadline = time.monotonic() + REGISTERED_S
        while absent := self.find_residual_effects(controls):
            if time.monotonic() > deadline:
                return f"after {REGISTERED_S:g} s {absent}"
            time.sleep(POLL_S)
        return "registered again"

    def find_residual_effects(self, controls: Controls) -> str:
        registered = controls.registered()
        absent = [node for node in self.targets if node not in registered]
        return f"not registered: {', '.join(absent)}" if absent else ""


def _expire(controls: Controls, node: str, session: int | None) -> tuple[bool, str]:
    """Close the session until it holds no registration. The broker may resume it first, so the
    close is repeated."""
    if session is None:
        return False, f"{node} was not registered"
    deadline = time.monotonic() + DEADLINE_S
    for attempt in range(1, ATTEMPTS + 1):
        controls.zookeeper_admin.end_session(session)
        now = controls.zookeeper_admin.session(node)
        if now != session:
            return True, f"session {session:#x} of {node} is gone (attempt {attempt})"
        if time.monotonic() > deadline:
            break
    return False, f"session {session:#x} still holds the registration of {node}"
