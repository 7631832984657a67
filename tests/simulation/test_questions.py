"""Questions with known answers are blocking code that waits in virtual time, and wrong answers are
findings."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from urteil.harness.conformance.catalogue import SUBJECTS
from urteil.suites.simulation.blocking import run_blocking, wait_for
from urteil.suites.simulation.checks import Finding, judge
from urteil.suites.simulation.cluster import EPOCH_MS
from urteil.suites.simulation.evidence import Evidence
from urteil.suites.simulation.history import History, Questioned
from urteil.suites.simulation.loop import SimulatedLoop
from urteil.suites.simulation.mixes import QUESTIONS, Scale
from urteil.suites.simulation.questions import SimulatedEnvironment
from urteil.suites.simulation.scenario import simulate

WRONG = Questioned("examiner", 5, 10_000_000_009, 2, "heartbeats", "wrong", "No instead of Fenced")


@pytest.fixture
def loop() -> SimulatedLoop:
    return SimulatedLoop(1)


@pytest.fixture
def environment(loop: SimulatedLoop) -> SimulatedEnvironment:
    return SimulatedEnvironment(loop, loop.network.host(loop.network.born("examiner")))


def _run(loop: SimulatedLoop, function: Callable[[], Any]) -> Any:
    """The result of blocking code."""

    async def running() -> Any:
        return await run_blocking(function)

    return loop.run_until_complete(running())


def test_blocking_code_waits_in_virtual_time(
    loop: SimulatedLoop, environment: SimulatedEnvironment
) -> None:
    def act() -> tuple[float, int]:
        environment.pause(3_600.0)
        return environment.monotonic_s(), environment.wall_ms()

    assert _run(loop, act) == (3_600.0, EPOCH_MS + 3_600_000)


def test_until_waits_in_virtual_time(
    loop: SimulatedLoop, environment: SimulatedEnvironment
) -> None:
    def act() -> tuple[float, float]:
        until = environment.until
        reached = until(environment.monotonic_s, lambda now: now >= 7, deadline_s=100, poll_s=1)
        return reached, until(lambda: 0, deadline_s=10.0, poll_s=1.0) or environment.monotonic_s()

    assert _run(loop, act) == (7.0, 18.0)


def test_acts_run_in_parallel(loop: SimulatedLoop, environment: SimulatedEnvironment) -> None:
    def act_for(seconds: float) -> Callable[[], float]:
        def act() -> float:
            environment.pause(seconds)
            return environment.monotonic_s()

        return act

    acts = [act_for(seconds) for seconds in (3.0, 1.0, 2.0)]
    assert _run(loop, lambda: environment.run_all(acts)) == [3.0, 1.0, 2.0]
    assert loop.time() == 3.0


def test_failed_act_is_raised_when_all_have_ended(
    loop: SimulatedLoop, environment: SimulatedEnvironment
) -> None:
    def fail() -> None:
        environment.pause(1.0)
        raise LookupError("first")

    with pytest.raises(LookupError, match="first"):
        _run(loop, lambda: environment.run_all([fail, lambda: environment.pause(2.0)]))
    assert loop.time() == 2.0


def test_failure_of_a_wait_is_raised_in_blocking_code(loop: SimulatedLoop) -> None:
    async def fail() -> None:
        raise ConnectionError

    def act() -> str:
        try:
            wait_for(fail())
        except ConnectionError:
            return "raised"
        return "not raised"

    assert _run(loop, act) == "raised"


def test_cancelled_blocking_code_unwinds(
    loop: SimulatedLoop, environment: SimulatedEnvironment
) -> None:
    unwound: list[float] = []

    def act() -> None:
        try:
            environment.pause(60.0)
        finally:
            unwound.append(environment.monotonic_s())

    async def cancel() -> None:
        task = asyncio.ensure_future(run_blocking(act))
        await asyncio.sleep(1.0)
        task.cancel()
        await asyncio.wait([task])

    loop.run_until_complete(cancel())
    assert unwound == [1.0]


def test_missing_broker_is_a_connection_error(
    loop: SimulatedLoop, environment: SimulatedEnvironment
) -> None:
    loop.network.born("b1")
    with pytest.raises(OSError, match="refused"):
        _run(loop, lambda: environment.connect("b1:9092", 3.0))


def test_silent_broker_times_out(loop: SimulatedLoop, environment: SimulatedEnvironment) -> None:
    loop.network.kill(loop.network.born("b1"), silent=True)
    with pytest.raises(TimeoutError):
        _run(loop, lambda: environment.connect("b1:9092", 3.0))
    assert loop.time() == 3.0


def test_wrong_answer_is_a_finding_with_the_answer() -> None:
    right = WRONG._replace(outcome="right", error=None)
    evidence = Evidence(History(questioned=[right, WRONG]), [], {}, {}, [], 2, healthy_s=0.0)
    assert judge(evidence).findings == [
        Finding("wrong_answer", "2/heartbeats/5: No instead of Fenced")
    ]


def test_every_question_is_put_or_has_a_reason() -> None:
    """A run puts questions in an order of its own; `Scale.sends` is how many."""
    run = simulate(1, Scale(sends=4, faults_s=0.0), mix=QUESTIONS)
    assert run.outcomes == {"right": 4}, run
    reasons = {question.unsimulated for question in SUBJECTS["all"]} - {""}
    assert all(len(reason) > 10 for reason in reasons)
