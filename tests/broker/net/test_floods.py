"""Peers that flood, stall within a frame or never read do not affect others."""

from __future__ import annotations

import asyncio
import tracemalloc

from tests.broker.net.raw import framed, run
from tests.broker.net.test_connection_limits import serving
from tests.waiting import wait_until

ANNOUNCED = (1 << 21) - 1
IDLE_MS = 3_000


def test_stalled_frames_hold_little_memory_and_are_closed() -> None:
    """A frame costs the bytes received, not the announced size."""

    async def scenario() -> None:
        async with serving(max_idle_ms=IDLE_MS) as served:
            tracemalloc.start()
            stalling = [await served.connect() for _ in range(200)]
            for client in stalling:
                client.writer.write(ANNOUNCED.to_bytes(4, "big") + b"x")
            honest = await served.connect()
            assert await honest.says()
            held_bytes, _ = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            assert held_bytes < 200 * 64_000

            async def are_closed() -> bool:
                assert await honest.says()  # neither idle nor a flood
                return len(served.server.connections) == 1

            await wait_until(are_closed, deadline_s=30)
            for client in stalling:
                client.close()
            assert await honest.says()

    run(scenario())


def test_flooding_peer_does_not_delay_others() -> None:
    """Requests with read or unread responses: another client is answered long before all of
    them."""

    async def scenario() -> None:
        async with serving() as served:
            flooding = [await served.connect() for _ in range(4)]
            frames = framed(b"y" * 100) * 5_000
            for client in flooding:
                client.writer.write(frames)
            reading = asyncio.create_task(flooding[0].reader.readexactly(len(frames)))
            honest = await served.connect()
            for _ in range(20):
                assert await honest.says()
            assert not reading.done()
            assert await reading == frames
            for client in flooding:
                client.close()

    run(scenario())
