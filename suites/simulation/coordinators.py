"""The group coordinators of a run: the leaders of the partition of the offsets topic."""

from __future__ import annotations

import json
from bisect import bisect_right

from urteil.suites.simulation.evidence import OFFSETS_STATE, Evidence


class Coordinators:
    """Read from the versions of the partition's state in ZooKeeper. A coordinator that restarts and
    is elected again loads its groups anew."""

    def __init__(self, evidence: Evidence) -> None:
        states = [
            (change.at_s, json.loads(change.data))
            for change in evidence.changes
            if change.path == OFFSETS_STATE and change.data is not None
        ]
        versions = [(at_s, (state["leader"], state["leader_epoch"])) for at_s, state in states]
        self._at_s = [
            at_s
            for (at_s, led), (_, before) in zip(
                versions, [(0.0, (-1, -1)), *versions], strict=False
            )
            if led != before
        ]
        self._led = {at_s: leader for at_s, (leader, _) in versions}

    def at(self, at_s: float) -> tuple[int, float]:
        """The leader at a time, and when it was elected; -1 for none."""
        n = bisect_right(self._at_s, at_s)
        return (self._led[self._at_s[n - 1]], self._at_s[n - 1]) if n else (-1, 0.0)

    def changed(self, since_s: float, until_s: float) -> bool:
        return self.at(since_s) != self.at(until_s)
