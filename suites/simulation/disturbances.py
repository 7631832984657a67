"""Disturbances: the effects of faults on brokers and links, with their times.

| kind | ends |
|---|---|
| `down` | a broker's process: from its end to its next start |
| `cut` | a directed link between two processes that delivers nothing |
| `slow` | a directed link that delivers late |
| `session` | a broker whose session or connection to ZooKeeper ended: one moment |
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

DOWN, CUT, SLOW, SESSION = "down", "cut", "slow", "session"


class Disturbance(NamedTuple):
    """A disturbance of `ends`, of one kind. `end_s` is infinite while it lasts."""

    kind: str
    ends: tuple[str, ...]
    begin_s: float
    end_s: float


class Stop(NamedTuple):
    """A controlled shutdown of a broker."""

    broker: int
    begin_s: float
    end_s: float


class Disturbances:
    """The disturbances of a run, as they begin and end."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._past: list[Disturbance] = []
        self._begun_s: dict[tuple[str, tuple[str, ...]], float] = {}

    def begin(self, kind: str, *ends: str) -> None:
        self._begun_s.setdefault((kind, ends), self._now_s())

    def end(self, kind: str, *ends: str) -> None:
        """Does nothing if none of that kind had begun."""
        begun_s = self._begun_s.pop((kind, ends), None)
        if begun_s is not None:
            self._past.append(Disturbance(kind, ends, begun_s, self._now_s()))

    def note(self, kind: str, *ends: str) -> None:
        """Add a disturbance of one moment."""
        self._past.append(Disturbance(kind, ends, self._now_s(), self._now_s()))

    def __call__(self) -> list[Disturbance]:
        """The disturbances that ended, and those that last."""
        lasting = [Disturbance(*key, begun_s, math.inf) for key, begun_s in self._begun_s.items()]
        return [*self._past, *lasting]
