"""The ZooKeeper session on the event loop. No other module of the broker uses ZooKeeper.

kazoo speaks the protocol on threads of its own. All results, watches and state changes are passed
to the loop. Nothing here blocks the loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import (
    BadVersionError,
    ConnectionClosedError,
    ConnectionLoss,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    SessionExpiredError,
)
from kazoo.protocol.states import KazooState, KeeperState
from kazoo.retry import KazooRetry

from urteil.broker.zookeeper.session_types import (
    Check,
    Create,
    Delete,
    MultiFailed,
    Op,
    Set,
    Stat,
    State,
    as_stat,
    first_failure,
)

__all__ = [
    "LOST",
    "BadVersionError",
    "Check",
    "ConnectionLoss",
    "Create",
    "Delete",
    "MultiFailed",
    "NoNodeError",
    "NodeExistsError",
    "NodeTooLarge",
    "NotEmptyError",
    "Session",
    "SessionClosed",
    "SessionExpiredError",
    "Set",
    "Stat",
    "State",
]

LOST = (ConnectionLoss, SessionExpiredError)
"""Errors of a write with unknown outcome; read again to learn it."""

CLOSE_TIMEOUT_S = 3.0
MAX_DATA_BYTES = 1_000_000
"""The limit of one write. ZooKeeper closes connections that send more than its `jute.maxbuffer` of
1 MiB, at every retry."""

log = logging.getLogger("zookeeper")
log_kazoo = logging.getLogger("zookeeper.kazoo")
log_kazoo.setLevel(logging.ERROR)  # kazoo logs each attempt to connect as a warning


class SessionClosed(Exception):
    """The owner closed the session; reads and writes are impossible.

    Not kazoo's ConnectionClosedError, which is a SessionExpiredError and suggests a retry.
    """


class NodeTooLarge(ValueError):
    """The data is too large for ZooKeeper; nothing was written."""


Watch = Callable[[str], None]
"""A callback for one change of the watched path, on the loop; read again to watch again.

It is also called when the connection is lost, because changes may be missed from then on.
"""


MOST_UNANSWERED = 100
"""Requests at kazoo at a time. It wakes its thread by a byte for each on a socket, which blocks the
loop when it is full: Linux holds 278 of them."""


class Session:
    """An asyncio interface to kazoo.

    Reads survive lost connections: they wait for the next one and read again, so they raise only
    NoNodeError and SessionClosed. Writes wait for a connection and are sent once: ConnectionLoss
    means an unknown outcome (the caller reads again), SessionExpiredError that the write was not
    done. Data above MAX_DATA_BYTES raises NodeTooLarge.
    """

    def __init__(
        self, connect: str, session_timeout_ms: int, resolve: Callable[[str], str] = str
    ) -> None:
        """`connect` is `host:port,host:port/chroot`; `resolve` turns a host into an address."""
        servers, _, chroot = connect.partition("/")
        self._chroot = f"/{chroot.strip('/')}" if chroot.strip("/") else ""
        self._client = KazooClient(
            hosts=_resolve(servers, resolve),
            timeout=session_timeout_ms / 1000,
            connection_retry=KazooRetry(
                max_tries=-1, delay=0.05, backoff=2, max_jitter=0.2, max_delay=0.4
            ),
            logger=log_kazoo,
        )
        self._callbacks: list[Callable[[State], None]] = []
        self._connected = asyncio.Event()
        self._slots = asyncio.Semaphore(MOST_UNANSWERED)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closing = False
        self.state = State.SUSPENDED
        self.session_id = 0

    def on_state(self, callback: Callable[[State], None]) -> None:
        """Register a callback for every CONNECTED, SUSPENDED and EXPIRED, in order, on the loop.

        EXPIRED means that the ephemeral nodes are deleted; a later CONNECTED is a new session.
        """
        self._callbacks.append(callback)

    async def connect(self, timeout_s: float) -> None:
        """Connect and create the chroot. Raises TimeoutError."""
        self._loop = asyncio.get_running_loop()
        self._client.add_listener(self._on_kazoo_state)
        self._client.start_async()
        try:
            async with asyncio.timeout(timeout_s):
                await self._connected.wait()
        except TimeoutError:
            await self.close()
            raise TimeoutError(f"no connection to ZooKeeper within {timeout_s:g} s") from None
        if self._chroot:
            await self.ensure("/")

    async def close(self) -> None:
        """Close the session: its ephemeral nodes disappear at once if ZooKeeper is reachable, and
        after the session timeout otherwise."""
        if self._closing:
            return
        self._closing = True
        self._connected.set()  # waiters resume and raise SessionClosed
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await _in_thread(self._stop)

    async def get(self, path: str, watch: Watch | None = None) -> tuple[bytes, Stat]:
        """Return a node's value. Raises NoNodeError (then without a watch)."""
        data, stat = await self._read(
            lambda: self._client.get_async(self._full_path(path), self._watcher(path, watch))
        )
        return data or b"", as_stat(stat)

    async def exists(self, path: str, watch: Watch | None = None) -> Stat | None:
        """Return the node's Stat or None; the watch is set in both cases."""
        stat = await self._read(
            lambda: self._client.exists_async(self._full_path(path), self._watcher(path, watch))
        )
        return None if stat is None else as_stat(stat)

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        """Return the sorted names of the children. Raises NoNodeError."""
        names = await self._read(
            lambda: self._client.get_children_async(
                self._full_path(path), self._watcher(path, watch)
            )
        )
        return sorted(names)

    async def sync(self, path: str) -> None:
        """Wait until the connected server has all changes that any server has acknowledged so
        far."""
        await self._read(lambda: self._client.sync_async(self._full_path(path)))

    async def create(
        self,
        path: str,
        data: bytes = b"",
        *,
        ephemeral: bool = False,
        sequence: bool = False,
        make_parents: bool = False,
    ) -> tuple[str, Stat]:
        """Create a node; return its path (with the sequence number) and Stat. Raises
        NodeExistsError."""
        _check_size(data)
        made, stat = await self._write(
            lambda: self._client.create_async(
                self._full_path(path),
                data,
                ephemeral=ephemeral,
                sequence=sequence,
                makepath=make_parents,
                include_data=True,
            )
        )
        return made[len(self._chroot) :], as_stat(stat)

    async def ensure(self, path: str) -> None:
        """Create a persistent node and its parents if they are missing."""
        await self._read(lambda: self._client.ensure_path_async(self._full_path(path)))

    async def set(self, path: str, data: bytes, version: int = -1) -> Stat:
        """Set the value. Raises NoNodeError and BadVersionError."""
        _check_size(data)
        return as_stat(
            await self._write(lambda: self._client.set_async(self._full_path(path), data, version))
        )

    async def delete(self, path: str, version: int = -1) -> None:
        """Delete a node. Raises NoNodeError, BadVersionError and NotEmptyError."""
        await self._write(lambda: self._client.delete_async(self._full_path(path), version))

    async def multi(self, ops: Sequence[Op]) -> list[Any]:
        """Run all operations or none; return True for a Check or Delete, the path for a Create,
        Stat for a Set.

        Raises MultiFailed with the index and the error of the failed operation.
        """
        _check_size(*(op.data for op in ops if isinstance(op, Create | Set)))
        results = await self._write(lambda: self._transaction(ops).commit_async())
        failure = first_failure(results)
        if failure is not None:
            raise failure
        return [
            as_stat(result) if isinstance(op, Set) else result
            for op, result in zip(ops, results, strict=True)
        ]

    def _transaction(self, ops: Sequence[Op]) -> Any:
        transaction = self._client.transaction()
        for op in ops:
            path = self._full_path(op.path)
            match op:
                case Check():
                    transaction.check(path, op.version)
                case Create():
                    transaction.create(path, op.data, ephemeral=op.ephemeral)
                case Set():
                    transaction.set_data(path, op.data, op.version)
                case Delete():
                    transaction.delete(path, op.version)
        return transaction

    async def _read(self, call: Callable[[], Any]) -> Any:
        while True:
            try:
                return await self._write(call)
            except LOST:
                log.debug("reading again after a lost connection")

    async def _write(self, call: Callable[[], Any]) -> Any:
        async with self._slots:
            await self._connected.wait()
            if self._closing:
                raise SessionClosed
            try:
                return await self._bridge(call())
            except ConnectionClosedError:
                if self._closing:
                    raise SessionClosed from None
                raise

    def _bridge(self, result: Any) -> Awaitable[Any]:
        assert self._loop is not None
        future: asyncio.Future[Any] = self._loop.create_future()
        result.rawlink(lambda done: self._on_loop(_finish, future, done))
        return future

    def _full_path(self, path: str) -> str:
        return (self._chroot + path).rstrip("/") or "/"

    def _watcher(self, path: str, watch: Watch | None) -> _Watcher | None:
        return None if watch is None else _Watcher(self._on_loop, path, watch)

    def _on_loop(self, function: Callable[..., None], *args: Any) -> None:
        """Call a function on the loop from any thread; dropped once the loop is closed."""
        assert self._loop is not None
        try:
            self._loop.call_soon_threadsafe(function, *args)
        except RuntimeError:
            if not self._loop.is_closed():
                raise

    def _on_kazoo_state(self, state: str) -> None:
        session = self._client.client_id
        self._on_loop(self._handle_state_change, state, session[0] if session else 0)
        dead = self._client.client_state == KeeperState.CLOSED and state == KazooState.LOST
        if dead and not self._closing:
            log.error("kazoo gave up its connection: starting it again")
            threading.Thread(target=self._revive, daemon=True).start()

    def _handle_state_change(self, state: str, session_id: int) -> None:
        if self._closing:
            return
        if state == KazooState.CONNECTED:
            self.state, self.session_id = State.CONNECTED, session_id
            self._connected.set()
        else:
            self.state = State.EXPIRED if state == KazooState.LOST else State.SUSPENDED
            self._connected.clear()
        log.info("session 0x%x %s", self.session_id, self.state.name)
        for callback in self._callbacks:
            callback(self.state)

    def _revive(self) -> None:
        self._client.stop()
        self._client.start_async()

    def _stop(self) -> None:
        self._client.stop()
        self._client.close()


def _check_size(*data: bytes) -> None:
    size = sum(map(len, data))
    if size > MAX_DATA_BYTES:
        raise NodeTooLarge(f"ZooKeeper does not take {size} bytes at once")


class _Watcher:
    """A watch in kazoo; equal watches are merged, so two reads cause one call."""

    __slots__ = ("_on_loop", "_path", "_watch")

    def __init__(self, on_loop: Callable[..., None], path: str, watch: Watch) -> None:
        self._on_loop, self._path, self._watch = on_loop, path, watch

    def __call__(self, event: object) -> None:
        self._on_loop(self._watch, self._path)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Watcher):
            return NotImplemented
        return self._path == other._path and self._watch == other._watch

    def __hash__(self) -> int:
        return hash((self._path, self._watch))


def _finish(future: asyncio.Future[Any], done: Any) -> None:
    if future.done():
        return
    if done.exception is not None:
        future.set_exception(done.exception)
    else:
        future.set_result(done.value)


async def _in_thread(function: Callable[[], None]) -> None:
    """Run in a daemon thread: a session that cannot close must not delay the exit."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()

    def run() -> None:
        try:
            function()
        finally:
            if not loop.is_closed():
                loop.call_soon_threadsafe(_release, future)

    threading.Thread(target=run, daemon=True).start()
    await future


def _release(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _resolve(servers: str, resolve: Callable[[str], str]) -> str:
    addresses = []
    for server in (part.strip() for part in servers.split(",")):
        host, colon, port = server.rpartition(":")
        addresses.append(f"{resolve(host)}:{port}" if colon else f"{resolve(server)}:2181")
    return ",".join(addresses)
