"""Controlled shutdowns that nothing disturbs."""

from __future__ import annotations

from collections.abc import Iterator

from urteil.suites.simulation.cluster import process
from urteil.suites.simulation.disturbances import DOWN, Disturbance, Stop
from urteil.suites.simulation.evidence import Evidence, Place, states_of

SETTLES_S = 10.0
"""The time after a disturbance in which the cluster may still elect leaders and change ISRs."""


def leadership_not_handed_over(evidence: Evidence) -> Iterator[str]:
    """A broker leads no partition any more when its registration ends, if another replica is in
    sync."""
    for stop in evidence.stops:
        if any(_disturbs(each, stop) for each in evidence.disturbances):
            continue
        ended_s = next(
            (
                change.at_s
                for change in evidence.changes
                if change.path == f"/brokers/ids/{stop.broker}"
                and change.data is None
                and change.at_s >= stop.begin_s
            ),
            stop.end_s,
        )
        last: dict[Place, dict[str, object]] = {}
        for place, change, state in states_of(evidence.changes):
            if change.at_s < ended_s:
                last[place] = state
        for place, state in last.items():
            if state["leader"] == stop.broker and state["isr"] != [stop.broker]:
                yield (
                    f"broker {stop.broker} still led {place[0]}-{place[1]} when it ended its "
                    f"registration at {ended_s:.3f} s, and the ISR was {state['isr']}"
                )


def _disturbs(disturbance: Disturbance, stop: Stop) -> bool:
    """Whether it acted shortly before or in the shutdown, and is not the shutdown itself."""
    is_own = (
        disturbance.kind == DOWN
        and disturbance.ends == (process(stop.broker),)
        and disturbance.begin_s == stop.begin_s
    )
    return (
        not is_own
        and disturbance.begin_s < stop.end_s
        and disturbance.end_s > stop.begin_s - SETTLES_S
    )
