"""A controlled shutdown that never ends, or fails, is a trouble of the run."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from urteil.broker.controller.controller import Controller
from urteil.suites.simulation.cluster import Cluster
from urteil.suites.simulation.loop import SimulatedLoop
from urteil.suites.simulation.schedule import LATENCY_S


async def never(_: Any) -> None:
    await asyncio.Event().wait()


async def fail(_: Any) -> None:
    raise ValueError("no")


def stops(monkeypatch: pytest.MonkeyPatch, stop: Any) -> list[str]:
    """What is noted when a lone broker stops whose controller's `stop` is this one."""
    loop = SimulatedLoop(1)
    loop.network.set_defaults(latency=LATENCY_S)
    cluster = Cluster(loop, random.Random(1))
    if stop is not None:
        monkeypatch.setattr(Controller, "stop", stop)

    async def play() -> None:
        cluster.start(1)
        await cluster.lives[1].starting
        await cluster.stop(1)

    try:
        loop.run_until_complete(play())
    finally:
        loop.end()
    return cluster.bad_stops


@pytest.mark.parametrize(
    ("stop", "noted"),
    [
        (None, []),
        (never, ["broker 1 did not stop within 60 s"]),
        (fail, ["broker 1 could not stop: ValueError('no')"]),
    ],
)
def test_bad_stop_is_noted(monkeypatch: pytest.MonkeyPatch, stop: Any, noted: list[str]) -> None:
    assert stops(monkeypatch, stop) == noted
