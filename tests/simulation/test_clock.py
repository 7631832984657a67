"""A broker that sets a timer by its clock finds the time over when the timer runs."""

from __future__ import annotations

import random

from urteil.suites.simulation.cluster import Clock
from urteil.suites.simulation.loop import SimulatedLoop


def test_timer_of_a_deadline_runs_when_the_deadline_is_over() -> None:
    """A group whose session deadline was rounded up set its timer for ever, at one moment."""
    loop, rng = SimulatedLoop(1), random.Random(1)
    clock = Clock(loop)
    early: list[float] = []

    def check(due_ms: float) -> None:
        if clock.monotonic_ms() < due_ms:
            early.append(due_ms)

    async def wait() -> None:
        for _ in range(1_000):
            due_ms = clock.monotonic_ms() + rng.uniform(1.0, 6_000.0)
            loop.call_at(due_ms / 1000.0, check, due_ms)
        ended = loop.create_future()
        loop.call_later(7.0, ended.set_result, None)
        await ended

    loop.run_until_complete(wait())
    assert not early
