"""Floods of connections: which are closed, which wait, and that others do not suffer."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

from tests.broker.net.raw import framed, run
from tests.ports import free_port
from tests.waiting import wait_until
from urteil.broker.config.listeners import Listener
from urteil.broker.config.live_properties import LiveProperties
from urteil.broker.net.connection import Answer, Connection
from urteil.broker.net.connection_limits import ConnectionLimits
from urteil.broker.net.host_names import Resolver
from urteil.broker.net.socket_server import SocketServer

CLIENT, INTERNAL = "CLIENT", "INTERNAL"


async def echo(_: Connection, frame: memoryview) -> list[Any]:
    return [framed(bytes(frame))]


class Served:
    def __init__(self, server: SocketServer, ports: dict[str, int], live: LiveProperties) -> None:
        self.server, self.ports, self.live = server, ports, live

    async def connect(self, listener: str = CLIENT, host: str = "127.0.0.1") -> Peer:
        return Peer(
            *await asyncio.open_connection(
                "127.0.0.1", self.ports[listener], local_addr=(host, 0), limit=1 << 22
            )
        )


class Peer:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def says(self, data: bytes = b"x") -> bool:
        """Whether the server answers; False if it closes."""
        try:
            self.writer.write(framed(data))
            return await asyncio.wait_for(self.reader.readexactly(4 + len(data)), 60) == framed(
                data
            )
        except (ConnectionError, asyncio.IncompleteReadError):
            return False

    async def is_waiting(self) -> bool:
        """Whether no response arrives for a while."""
        try:
            await asyncio.wait_for(self.reader.read(1), 0.2)
        except TimeoutError:
            return True
        return False

    def close(self) -> None:
        self.writer.transport.abort()


def milliseconds() -> Callable[[], int]:
    """Milliseconds by the clock of timers."""
    clock = asyncio.get_running_loop().time
    began = clock()
    return lambda: round((clock() - began) * 1000)


@contextlib.asynccontextmanager
async def serving(
    backlog: int = 50,
    answer: Answer = echo,
    max_queued_bytes: int = -1,
    connect: Callable[[str], int] = lambda _: 0,
    max_idle_ms: int = 0,
    **config: str,
) -> AsyncIterator[Served]:
    live = LiveProperties({name.replace("_", "."): value for name, value in config.items()})
    server = SocketServer(
        max_frame_bytes=1 << 21,
        max_idle_ms=max_idle_ms,
        backlog=backlog,
        answer=answer,
        max_queued_bytes=max_queued_bytes,
        limits=ConnectionLimits(live, INTERNAL, backlog, connect),
    )
    ports = {name: free_port() for name in (CLIENT, INTERNAL)}
    listeners = [Listener(n, "127.0.0.1", p, "", p, "PLAINTEXT") for n, p in ports.items()]
    await server.listen(tuple(listeners), Resolver())
    try:
        yield Served(server, ports, live)
    finally:
        await server.close()


def test_limit_per_address_is_separate_for_each_address() -> None:
    async def scenario() -> None:
        async with serving(max_connections_per_ip="2") as served:
            first, second = await served.connect(), await served.connect()
            assert await first.says()
            assert await second.says()
            assert not await (await served.connect()).says()
            assert await (await served.connect(host="127.0.0.2")).says()
            first.close()

            async def is_accepted() -> bool:
                return bool(await (await served.connect()).says())

            await wait_until(is_accepted, deadline_s=10)

    run(scenario())


def test_override_of_an_address_may_change() -> None:
    async def scenario() -> None:
        overrides = {"max.connections.per.ip.overrides": "127.0.0.3:0, 127.0.0.4:1"}
        async with serving(**overrides) as served:
            assert not await (await served.connect(host="127.0.0.3")).says()
            assert await (await served.connect(host="127.0.0.4")).says()
            assert not await (await served.connect(host="127.0.0.4")).says()
            assert await (await served.connect()).says()
            served.live.replace(own={"max.connections.per.ip.overrides": "127.0.0.3:1"})
            assert await (await served.connect(host="127.0.0.3")).says()

    run(scenario())


def test_connection_above_the_limit_waits_for_a_place() -> None:
    async def scenario() -> None:
        async with serving(backlog=2, max_connections="2") as served:
            peers = [await served.connect() for _ in range(2)]
            assert [await peer.says() for peer in peers] == [True, True]
            late, later = await served.connect(), await served.connect()
            late.writer.write(framed(b"y" * 1_000_000))
            assert await late.is_waiting()
            assert not await (await served.connect()).says()  # more than wait
            peers[0].close()
            assert await late.reader.readexactly(4 + 1_000_000) == framed(b"y" * 1_000_000)
            assert await later.is_waiting()
            late.close()
            assert await later.says()

    run(scenario())


def test_raised_listener_limit_admits_waiting_connections() -> None:
    async def scenario() -> None:
        async with serving(**{"listener.name.client.max.connections": "1"}) as served:
            first = await served.connect()
            assert await first.says()
            late = await served.connect()
            late.writer.write(framed(b"x"))
            assert await late.is_waiting()
            assert await (await served.connect(INTERNAL)).says()
            served.live.replace(own={"listener.name.client.max.connections": "2"})
            assert await late.reader.readexactly(5) == framed(b"x")

    run(scenario())


def test_broker_replaces_an_idle_client() -> None:
    async def scenario() -> None:
        async with serving(max_connections="2") as served:
            idle, active = await served.connect(), await served.connect()
            assert await idle.says()
            assert await active.says()
            assert await (await served.connect(INTERNAL)).says()
            assert await asyncio.wait_for(idle.reader.read(), 10) == b""
            assert await active.says()

    run(scenario())


def test_two_thousand_connections_do_not_delay_others() -> None:
    async def scenario() -> None:
        async with serving(max_connections_per_ip="100") as served:
            other = await served.connect(host="127.0.0.9")
            # from an address of its own: it takes many ports, and elsewhere brokers start on some
            flood = [await served.connect(host="127.0.0.8") for _ in range(2000)]
            for _ in range(100):
                assert await other.says()
            assert len(served.server.connections) == 101
            for connection in flood:
                connection.close()

    run(scenario())


def test_request_memory_is_limited_and_all_requests_are_answered() -> None:
    """Thirty clients send ten requests of 200 kB each at once; the limit is two megabytes."""
    size, limit = 200_000, 2_000_000
    held: list[int] = []

    async def slow(_: Connection, frame: memoryview) -> list[Any]:
        memory = served_now[0].server._memory
        assert memory is not None
        held.append(memory.held_bytes)
        await asyncio.sleep(0.001)
        return [framed(bytes(frame[:1]))]

    served_now: list[Served] = []

    async def scenario() -> None:
        async with serving(answer=slow, max_queued_bytes=limit) as served:
            served_now.append(served)
            peers = [await served.connect() for _ in range(30)]
            begun = await served.connect()
            begun.writer.write((1_000_000).to_bytes(4, "big") + b"only begun")
            for peer in peers:
                peer.writer.write(framed(b"x" * size) * 10)
            for peer in peers:
                assert await asyncio.wait_for(peer.reader.readexactly(50), 30) == framed(b"x") * 10
                peer.close()
            begun.close()
            await wait_until(lambda: not served.server.connections, deadline_s=10)
            assert served.server._memory is not None
            assert served.server._memory.held_bytes == 0

    run(scenario())
    assert len(held) == 300
    # each may end the request it began, with one more begun in what came with it
    assert max(held) <= limit + 1_000_000 + 30 * (2 * size + 256 * 1024)


def test_connections_above_the_rate_wait() -> None:
    """Twenty connections make a rate of two per second over ten windows; other brokers connect
    meanwhile."""

    async def scenario() -> None:
        async with serving(**{"max.connection.creation.rate": "2"}) as served:
            now_ms = milliseconds()
            peers = [await served.connect() for _ in range(20)]
            assert all([await peer.says() for peer in peers])
            late, later = await served.connect(), await served.connect()
            later.close()
            assert await (await served.connect(INTERNAL)).says()
            assert await late.says()
            assert now_ms() >= 500
            served.live.replace(cluster_wide={"max.connection.creation.rate": "5000"})
            assert await (await served.connect()).says()

    run(scenario())


def test_listener_rate_has_a_bounded_queue() -> None:
    async def scenario() -> None:
        rate = {"listener.name.client.max.connection.creation.rate": "0"}
        async with serving(backlog=2, **rate) as served:
            now_ms = milliseconds()
            waiting = [await served.connect() for _ in range(2)]
            assert not await (await served.connect()).says()
            assert await (await served.connect(INTERNAL)).says()
            for turn, client in enumerate(waiting, 1):
                assert await client.says()
                assert now_ms() >= turn * 1000

    run(scenario())


def test_address_above_its_rate_is_closed_after_a_while() -> None:
    async def scenario() -> None:
        waits = {"127.0.0.5": 400}
        async with serving(connect=lambda host: waits.get(host, 0)) as served:
            now_ms = milliseconds()
            fast = await served.connect(host="127.0.0.5")
            assert await (await served.connect()).says()
            assert not await fast.says()
            assert now_ms() >= waits["127.0.0.5"]
            waits.clear()
            assert await (await served.connect(host="127.0.0.5")).says()

    run(scenario())
