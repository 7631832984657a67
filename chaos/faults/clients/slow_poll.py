"""A group member that heartbeats but does not poll: its group must continue without it."""

from __future__ import annotations

from urteil.chaos.client_selectors import select_clients
from urteil.chaos.controls import ClientControls, Controls
from urteil.chaos.effects import Effect
from urteil.chaos.faults.base.fault import Fault, Proof
from urteil.chaos.waiting import until

IDLE_S = 1.5
"""Longer than the interval at which an idle member writes its journal (`journal.IDLE_NS`)."""
DEADLINE_S = 10.0


class SlowPoll(Fault):
    """Stops members between two polls, beyond max.poll.interval.ms if it lasts long enough."""

    name = "slow_poll"
    listed_after = "topic_churn"
    about = "a group member stops polling but not its heartbeats, and polls again at healing"
    effects = frozenset({Effect.STOPS_POLLS})
    proves = f"the member's journal did not grow for {IDLE_S:g} s"
    selectors = "member (one, by the seed), members, a client"
    sample = ""

    def begin(self, controls: Controls) -> Proof:
        chosen, members = (
            select_clients(controls.clients, self.arguments),
            controls.clients.names("group"),
        )
        if unknown := [name for name in chosen if name not in members]:
            raise ValueError(
                f"{unknown[0]} is not a group member: aim at member, members or g1, ..."
            )
        self.targets = tuple(chosen)
        for name in self.targets:
            controls.clients.pause_polling(name)
        idle = [name for name in self.targets if _is_idle(controls.clients, name)]
        text = ", ".join(f"{name} wrote nothing for {IDLE_S:g} s" for name in idle)
        return Proof(acted=len(idle) == len(self.targets), text=text or "no member stopped polling")

    def heal(self, controls: Controls) -> str:
        for name in self.targets:
            controls.clients.resume_polling(name)
        return f"{', '.join(self.targets)} polls again"

    def find_residual_effects(self, controls: Controls) -> str:
        return ""


def _is_idle(controls: ClientControls, name: str) -> bool:
    """Whether the member writes nothing for IDLE_S before DEADLINE_S: a poll may be running."""
    sizes: list[int] = []

    def has_paused() -> bool:
        sizes.append(controls.journal_bytes(name))
        return sizes[-1:] == sizes[-2:-1]

    return until(has_paused, deadline_s=DEADLINE_S, poll_s=IDLE_S)
