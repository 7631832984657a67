"""A ring of majorities: every broker sees a majority, and no two see the same."""

from __future__ import annotations

from typing import ClassVar

from urteil.chaos.controls import Controls
from urteil.chaos.faults.partition import CutLinks
from urteil.chaos.node_selectors import NoTarget
from urteil.chaos.observations import Link


class Ring(CutLinks):
    """The seed seats the brokers in a ring; each asks its neighbours alone, so many that with
    itself they are a majority."""

    name = "ring"
    about = "a ring of majorities: every broker asks a majority of them, no two the same one"
    selectors = "all"
    sample = "all"
    options: ClassVar[dict[str, str]] = {"close": "break connections rather than stall them"}

    def choose(self, controls: Controls) -> list[Link]:
        seats = list(controls.brokers)
        if self.arguments.target != "all":
            raise NoTarget(f"a ring is of all brokers, not of {self.arguments.target}")
        if len(seats) < 3:
            raise NoTarget(f"{len(seats)} brokers make no ring")
        self.arguments.random().shuffle(seats)
        cut = {Link(a, b) for a in seats for b in seats if b not in _seen(seats, a)}
        return [link for link in controls.net.links() if link in cut]


def _seen(seats: list[str], node: str) -> set[str]:
    """A majority in the ring's order with `node` in its middle, or just before it."""
    count = len(seats) // 2 + 1
    first = seats.index(node) - (count - 1) // 2
    return {seats[(first + at) % len(seats)] for at in range(count)}
