"""Intervals of time, and the parts of one that others do not cover.

The simulation computes with them, too: this module imports nothing that its environment lacks.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Interval:
    """The time from `begin_ns` to `end_ns`."""

    begin_ns: int
    end_ns: int

    def meets(self, other: Interval) -> bool:
        return self.begin_ns < other.end_ns and other.begin_ns < self.end_ns


def undisturbed_between(
    disturbed: Iterable[Interval], begin_ns: int, end_ns: int
) -> list[Interval]:
    """The parts of the time from `begin_ns` to `end_ns` that no disturbance covers; none if it ends
    before it begins."""
    intervals: list[Interval] = []
    since_ns = begin_ns
    for interval in sorted(disturbed, key=lambda interval: interval.begin_ns):
        if since_ns < min(interval.begin_ns, end_ns):
            intervals.append(Interval(since_ns, min(interval.begin_ns, end_ns)))
        since_ns = max(since_ns, interval.end_ns)
    return [*intervals, Interval(since_ns, end_ns)] if since_ns < end_ns else intervals
