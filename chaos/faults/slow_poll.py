"""A group member that does not poll: it heartbeats, and its group must go on without it."""

from __future__ import annotations

import threading
import time
from typing import ClassVar

from urteil.chaos.client_selectors import select_clients
from urteil.chaos.controls import ClientControls, Controls
from urteil.chaos.faults.fault import Fault, Proof

STILL_S = 1.5
"""Longer than a member that polls and is given nothing writes nothing (`journal.IDLE_NS`)."""
DEADLINE_S = 10.0


class SlowPoll(Fault):
    """Let members stand still between two polls, past max.poll.interval.ms if it lasts."""

    name = "slow_poll"
    about = "a group member stops polling but not its heartbeats, and goes on at healing"
    family = "clients"
    proves = f"the member's journal did not grow for {STILL_S:g} s"
    selectors = "member (one, by the seed), members, a client"
    options: ClassVar[dict[str, str]] = {}
    sample = ""

    def begin(self, controls: Controls) -> Proof:
        chosen, members = (
            select_clients(controls.clients, self.arguments),
            controls.clients.names("group"),
        )
        if strange := [name for name in chosen if name not in members]:
            raise ValueError(f"{strange[0]} is no group member: aim at member, members or g1, ...")
        self.targets = tuple(chosen)
        for name in self.targets:
            controls.clients.pause_polling(name)
        still = [name for name in self.targets if _stands_still(controls.clients, name)]
        text = ", ".join(f"{name} wrote nothing for {STILL_S:g} s" for name in still)
        return Proof(acted=len(still) == len(self.targets), text=text or "nobody stood still")

    def heal(self, controls: Controls) -> str:
        for name in self.targets:
            controls.clients.resume_polling(name)
        return f"{', '.join(self.targets)} polls again"

    def find_residual_effects(self, controls: Controls) -> str:
        return ""


def _stands_still(controls: ClientControls, name: str) -> bool:
    """Whether it writes nothing for STILL_S, within DEADLINE_S: a poll may be under way."""
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        before = controls.journal_bytes(name)
        threading.Event().wait(STILL_S)
        if controls.journal_bytes(name) == before:
            return True
    return False
