"""A broker's ZooKeeper session ends while the broker runs."""

from __future__ import annotations

from operator import not_

from urteil.chaos import node_selectors
from urteil.chaos.controls import Controls
from urteil.chaos.effects import Effect
from urteil.chaos.faults.base.fault import WITH_ZOOKEEPER, Fault, Proof
from urteil.chaos.parallel import run_on_all
from urteil.chaos.waiting import until

DEADLINE_S = 5.0
REGISTERED_S = 5.0
POLL_S = 0.05


class SessionExpired(Fault):
    """Closes brokers' sessions by id and password, with the same effect as their expiry.

    ZooKeeper removes their registrations, and `/controller` if one of them is the controller.
    Healing waits until the brokers are registered again.
    """

    name = "session_expired"
    about = "end a broker's ZooKeeper session: its ephemeral znodes vanish while it runs"
    effects = frozenset({Effect.ENDS_SESSIONS})
    proves = "the session no longer holds the broker's registration"
    on_targets = WITH_ZOOKEEPER
    sample = "controller"

    def begin(self, controls: Controls) -> Proof:
        self.targets = tuple(node_selectors.select_nodes(controls, self.arguments))
        before = {node: controls.zookeeper_admin.session(node) for node in self.targets}
        results = run_on_all(lambda node: _expire(controls, node, before[node]), self.targets)
        acted = bool(results) and all(ended for ended, _ in results)
        return Proof(acted=acted, text="; ".join(text for _, text in results))

    def heal(self, controls: Controls) -> str:
        absent = until(
            lambda: self.find_residual_effects(controls),
            not_,
            deadline_s=REGISTERED_S,
            poll_s=POLL_S,
        )
        return f"after {REGISTERED_S:g} s {absent}" if absent else "registered again"

    def find_residual_effects(self, controls: Controls) -> str:
        registered = controls.registered_brokers()
        absent = [node for node in self.targets if node not in registered]
        return f"not registered: {', '.join(absent)}" if absent else ""


def _expire(controls: Controls, node: str, session: int | None) -> tuple[bool, str]:
    """Close the session until it holds no registration. The broker may resume it first, so the
    close is repeated."""
    if session is None:
        return False, f"{node} was not registered"
    attempts = 0

    def close_session() -> bool:
        nonlocal attempts
        attempts += 1
        controls.zookeeper_admin.end_session(session)
        return controls.zookeeper_admin.session(node) != session

    if until(close_session, deadline_s=DEADLINE_S, poll_s=0.0):
        return True, f"session {session:#x} of {node} is gone (attempt {attempts})"
    return False, f"session {session:#x} still holds the registration of {node}"
