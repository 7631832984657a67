"""Brokers that went and came back while nobody was controller to see it.

Ours registers again before its earlier session ends. One whose machine lost power in between has
lost what it had not synced: it must not lead on, in the same epoch, over those who have it all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from tests.broker.controller.in_memory_zookeeper import SimulatedTerm, World

TP = ("t", 0)


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(120):
            await scenario()

    asyncio.run(bounded())


async def begun(world: World) -> SimulatedTerm:
    term = SimulatedTerm(world)
    await term.begin()
    return term


def test_leader_with_unnoticed_restart_is_replaced() -> None:
    async def scenario() -> None:
        world = World((1, 2, 3), {"t": {0: (2, 1, 3)}})
        (await begun(world)).term.close()
        assert (world.zk.state(TP).leader, world.zk.state(TP).isr) == (2, (2, 1, 3))
        world.go(2)
        world.come(2)
        term = await begun(world)
        state = world.zk.state(TP)
        assert (state.leader, state.leader_epoch, state.isr) == (1, 1, (1, 3))
        assert world.brokers[2].disk[TP].leader == 1
        assert set(term.term.context.brokers) == {1, 2, 3}

    run(scenario)


def test_follower_with_unnoticed_restart_leaves_the_isr() -> None:
    async def scenario() -> None:
        world = World((1, 2, 3), {"t": {0: (2, 1, 3)}})
        (await begun(world)).term.close()
        world.go(3)
        world.come(3)
        await begun(world)
        state = world.zk.state(TP)
        assert (state.leader, state.isr) == (2, (2, 1))

    run(scenario)


def test_first_registered_broker_leads_if_all_restarted() -> None:
    """In the old epoch those who had kept more would not cut what the leader had lost."""

    async def scenario() -> None:
        world = World((1, 2, 3), {"t": {0: (2, 1, 3)}, "u": {0: (1, 2, 3)}, "sole": {0: (3,)}})
        (await begun(world)).term.close()
        for broker in (1, 2, 3):
            world.go(broker)
            world.come(broker)
        term = await begun(world)
        for topic in ("t", "u"):
            state = world.zk.state((topic, 0))
            assert (state.leader, state.leader_epoch, state.isr) == (1, 1, (1,))
        sole = world.zk.state(("sole", 0))
        assert (sole.leader, sole.isr) == (3, (3,))
        assert sole.leader_epoch > 0
        assert set(term.term.context.brokers) == {1, 2, 3}

    run(scenario)


def test_noticed_restart_is_handled_once() -> None:
    async def scenario() -> None:
        world = World((1, 2, 3), {"t": {0: (2, 1, 3)}})
        term = await begun(world)
        world.go(2)
        await term.settle()
        world.come(2)
        await term.settle()
        await term.catch_up(TP)
        before = world.zk.state(TP)
        assert (before.leader, set(before.isr)) == (1, {1, 2, 3})
        term.term.close()
        await begun(world)
        assert world.zk.state(TP) == before

    run(scenario)
