"""A queue that runs one callback in each turn of the loop."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from urteil.broker.base.one_per_turn import OnePerTurn

PIECES = 5


def test_callbacks_run_in_order_one_each_turn() -> None:
    async def scenario() -> list[str]:
        turns, ran = OnePerTurn(), list[str]()
        for number in range(PIECES):
            turns.put(partial(ran.append, str(number)))
        for _ in range(PIECES):
            await asyncio.sleep(0)
            ran.append("other")
        return ran

    sequence = asyncio.run(scenario())
    assert sequence == [piece for number in range(PIECES) for piece in (str(number), "other")]


def test_failing_callback_does_not_stop_the_next(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> list[str]:
        turns, ran = OnePerTurn(), list[str]()
        turns.put(lambda: ran.remove("absent"))
        turns.put(lambda: ran.append("next"))
        for _ in range(3):
            await asyncio.sleep(0)
        return ran

    assert asyncio.run(scenario()) == ["next"]
    assert "ValueError" in caplog.text


def test_callback_added_by_a_callback_runs_after_it() -> None:
    async def scenario() -> list[str]:
        turns, ran = OnePerTurn(), list[str]()
        turns.put(lambda: (ran.append("first"), turns.put(lambda: ran.append("second")))[0])
        for _ in range(3):
            await asyncio.sleep(0)
        return ran

    assert asyncio.run(scenario()) == ["first", "second"]
