"""Peers that flood, stall in the middle of a frame or never read cost the others nothing."""

from __future__ import annotations

import asyncio
import tracemalloc

from tests.broker.net.raw import framed, run
from tests.broker.net.test_connection_limits import serving

ANNOUNCED = (1 << 21) - 1
IDLE_MS = 3_000


def test_peers_that_stall_in_the_middle_of_a_frame_hold_no_memory_and_end() -> None:
    """A frame costs what was received of it, not what it announces."""

    async def scenario() -> None:
        async with serving(max_idle_ms=IDLE_MS) as served:
            tracemalloc.start()
            stalling = [await served.connect() for _ in range(200)]
            for one in stalling:
                one.writer.write(ANNOUNCED.to_bytes(4, "big") + b"x")
            honest = await served.connect()
            assert await honest.says()
            held_bytes, _ = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            assert held_bytes < 200 * 64_000
            async with asyncio.timeout(30):
                while len(served.server.connections) > 1:
                    assert await honest.says()
                    await asyncio.sleep(0.02)  # not idle, and not a flood either
            for one in stalling:
                one.close()
            assert await honest.says()

    run(scenario())


def test_a_peer_that_floods_waits_for_its_turn_like_the_others() -> None:
    """Requests whose answers are read, or not: somebody else is answered long before them all."""

    async def scenario() -> None:
        async with serving() as served:
            flooding = [await served.connect() for _ in range(4)]
            frames = framed(b"y" * 100) * 5_000
            for one in flooding:
                one.writer.write(frames)
            reading = asyncio.create_task(flooding[0].reader.readexactly(len(frames)))
            honest = await served.connect()
            for _ in range(20):
                assert await honest.says()
            assert not reading.done()
            assert await reading == frames
            for one in flooding:
                one.close()

    run(scenario())
