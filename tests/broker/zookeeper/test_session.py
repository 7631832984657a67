from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from tests.broker.zookeeper.server import ZooKeeperServer, expire
from tests.waiting import wait_until
from urteil.broker.zookeeper.session import (
    MAX_DATA_BYTES,
    BadVersionError,
    Check,
    Create,
    Delete,
    MultiFailed,
    NodeExistsError,
    NodeTooLarge,
    NoNodeError,
    NotEmptyError,
    Session,
    Set,
    State,
)


@asynccontextmanager
async def session(
    server: ZooKeeperServer, chroot: str, timeout_ms: int = 15_000
) -> AsyncIterator[Session]:
    opened = Session(f"zk:{server.port}{chroot}", timeout_ms, lambda host: "127.0.0.1")
    await opened.connect(60)
    try:
        yield opened
    finally:
        await opened.close()


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(200):
            await scenario()

    asyncio.run(bounded())


def test_nodes_are_created_read_changed_and_deleted(
    zookeeper: ZooKeeperServer, chroot: str
) -> None:
    async def scenario() -> None:
        async with session(zookeeper, chroot) as zk:
            path, made = await zk.create("/a/b", b"1", make_parents=True)
            assert path == "/a/b"
            assert made.version == 0
            with pytest.raises(NodeExistsError):
                await zk.create("/a/b")
            data, stat = await zk.get("/a/b")
            assert (data, stat.czxid) == (b"1", made.czxid)
            assert (await zk.set("/a/b", b"2", 0)).version == 1
            with pytest.raises(BadVersionError):
                await zk.set("/a/b", b"3", 0)
            await zk.sync("/a")
            assert await zk.children("/a") == ["b"]
            with pytest.raises(NotEmptyError):
                await zk.delete("/a")
            await zk.delete("/a/b", 1)
            await zk.delete("/a")
            assert await zk.exists("/a") is None
            with pytest.raises(NoNodeError):
                await zk.get("/a")

    run(scenario)


def test_oversized_data_is_not_sent(zookeeper: ZooKeeperServer, chroot: str) -> None:
    async def scenario() -> None:
        async with session(zookeeper, chroot) as zk:
            states: list[State] = []
            zk.on_state(states.append)
            large = b"x" * MAX_DATA_BYTES
            await zk.create("/a", large, make_parents=True)
            await zk.set("/a", large)
            with pytest.raises(NodeTooLarge):
                await zk.create("/b", large + b"x")
            with pytest.raises(NodeTooLarge):
                await zk.set("/a", large + b"x")
            with pytest.raises(NodeTooLarge):
                await zk.multi([Set("/a", large), Create("/b", b"x")])
            assert await zk.children("/") == ["a"]
            assert states == []

    run(scenario)


def test_multi_is_atomic_and_reports_the_failed_operation(
    zookeeper: ZooKeeperServer, chroot: str
) -> None:
    async def scenario() -> None:
        async with session(zookeeper, chroot) as zk:
            await zk.create("/epoch", b"1")
            made = await zk.multi(
                [Check("/epoch", 0), Create("/x", b"", ephemeral=True), Set("/epoch", b"2", 0)]
            )
            assert made[2].version == 1
            with pytest.raises(MultiFailed) as failed:
                await zk.multi([Set("/x", b"new"), Check("/epoch", 0), Delete("/x")])
            assert failed.value.index == 1
            assert isinstance(failed.value.cause, BadVersionError)
            assert (await zk.get("/x"))[0] == b""

    run(scenario)


def test_repeated_watches_fire_once(zookeeper: ZooKeeperServer, chroot: str) -> None:
    async def scenario() -> None:
        async with session(zookeeper, chroot) as zk:
            events: list[str] = []
            await zk.create("/w")
            await zk.children("/w", events.append)
            await zk.children("/w", events.append)
            await zk.exists("/later", events.append)
            await zk.create("/w/1")
            await zk.create("/w/2")
            await zk.create("/later")
            await wait_until(lambda: len(events) >= 2, "both watches")
            await zk.get("/w")
            assert events == ["/w", "/later"]

    run(scenario)


def test_expiry_is_reported_and_a_new_session_follows(
    zookeeper: ZooKeeperServer, chroot: str
) -> None:
    async def scenario() -> None:
        async with session(zookeeper, chroot) as zk:
            states: list[State] = []
            events: list[str] = []
            zk.on_state(states.append)
            before = zk.session_id
            await zk.create("/mine", ephemeral=True)
            await zk.exists("/mine", events.append)
            expire(zookeeper.connect, zk)
            await wait_until(lambda: states[-1:] == [State.CONNECTED], "a new session")
            assert State.EXPIRED in states
            assert zk.session_id != before
            assert events
            assert await zk.exists("/mine") is None

    run(scenario)


def test_reads_survive_a_lost_connection(zookeeper: ZooKeeperServer, chroot: str) -> None:
    """Paused for less than the session timeout: the session survives, and so does the read."""

    async def scenario() -> None:
        async with session(zookeeper, chroot, timeout_ms=900) as zk:
            states: list[State] = []
            zk.on_state(states.append)
            await zk.create("/kept", b"here", ephemeral=True)
            before = zk.session_id
            zookeeper.pause()
            read = asyncio.create_task(zk.get("/kept"))
            try:
                await wait_until(lambda: State.SUSPENDED in states, "suspension")
                assert not read.done()
            finally:
                zookeeper.resume()
            try:
                assert (await read)[0] == b"here"
                assert zk.session_id == before
            except NoNodeError:  # on a machine that stood still the session did not go on
                assert State.EXPIRED in states

    run(scenario)


def test_unreachable_server_is_a_timeout() -> None:
    async def scenario() -> None:
        zk = Session("127.0.0.1:1", 1000)
        with pytest.raises(TimeoutError, match=r"within 0\.3 s"):
            await zk.connect(0.3)

    run(scenario)
