"""One client's session with the model: the face of `broker/zookeeper/session.py`, over links that
can be slow, cut either way, or lost between a write and its answer."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from kazoo.exceptions import KazooException

from urteil.broker.zookeeper.session import (
    LOST,
    ConnectionLoss,
    SessionClosed,
    Watch,
)
from urteil.broker.zookeeper.session_types import Create, MultiFailed, Op, Stat, State
from urteil.suites.simulation.loop import SimulatedLoop
from urteil.suites.simulation.zookeeper import HOST, Ensemble, ServerSession

HELD_S = 0.1


class Wire:
    """One direction of one connection: in order, held while it is cut, gone when closed."""

    def __init__(self, loop: SimulatedLoop, source: str, target: str, run_on: str) -> None:
        self._loop = loop
        self._ends = (source, target)
        self._context = loop.context_of(run_on)
        self._queue: deque[tuple[float, Callable[..., None], tuple[Any, ...]]] = deque()
        self._armed = False
        self.is_open = True

    def send(self, deliver: Callable[..., None], *args: Any) -> None:
        when = self._loop.time() + self._loop.network.latency(*self._ends)
        self._queue.append((when, deliver, args))
        self._arm(when)

    def _arm(self, when: float) -> None:
        if not self._armed:
            self._armed = True
            self._loop.call_at(when, self._deliver, context=self._context)

    def _deliver(self) -> None:
        self._armed = False
        if not self.is_open:
            return
        if self._loop.network.is_cut(*self._ends):
            self._arm(self._loop.time() + HELD_S)
            return
        _, deliver, args = self._queue.popleft()
        if self._queue:
            self._arm(max(self._queue[0][0], self._loop.time()))
        deliver(*args)

    def close(self) -> None:
        self.is_open = False


class Connection:
    """Two wires and the session they serve."""

    def __init__(self, loop: SimulatedLoop, process: str, host: str) -> None:
        self.up = Wire(loop, process, HOST, f"{HOST}.1")
        self.down = Wire(loop, HOST, process, host)
        self.waiting: dict[asyncio.Future[Any], None] = {}
        self.session: ServerSession | None = None
        self.loses_next_answer = False

    @property
    def is_open(self) -> bool:
        return self.down.is_open

    def close(self) -> None:
        self.up.close()
        self.down.close()


class SimulatedSession:
    """A session of the process `process`, whose life is the host `host`."""

    def __init__(
        self, loop: SimulatedLoop, ensemble: Ensemble, process: str, host: str, timeout_ms: int
    ) -> None:
        self._loop = loop
        self._zk = ensemble
        self._process, self._host = process, host
        self._timeout_s = timeout_ms / 1000
        self._callbacks: list[Callable[[State], None]] = []
        self._connected = asyncio.Event()
        self._connection: Connection | None = None
        self._heard_s = 0.0
        self._watches: dict[tuple[str, str], dict[Watch, None]] = {}
        self._keeper: asyncio.Task[None] | None = None
        self._closing = False
        self.state = State.SUSPENDED
        self.session_id = 0

    # faults

    def lose_connection(self) -> None:
        """The connection breaks: what is under way may have been done."""
        if self._connection is not None:
            self._connection.close()

    def lose_next_answer(self) -> None:
        """The next write is done, and its answer lost with the connection."""
        if self._connection is not None:
            self._connection.loses_next_answer = True

    # the life of a session

    def on_state(self, callback: Callable[[State], None]) -> None:
        self._callbacks.append(callback)

    async def connect(self, timeout_s: float) -> None:
        self._keeper = self._loop.create_task(self._keep())
        try:
            async with asyncio.timeout(timeout_s):
                await self._connected.wait()
        except TimeoutError:
            raise TimeoutError(f"no connection to ZooKeeper within {timeout_s:g} s") from None

    async def close(self) -> None:
        if self._closing:
            return
        self._closing = True
        self._connected.set()
        if self._keeper is not None:
            self._keeper.cancel()
        connection = self._connection
        if connection is not None and connection.is_open and connection.session is not None:
            connection.up.send(self._zk.expire, connection.session)

    async def _keep(self) -> None:
        while True:
            try:
                async with asyncio.timeout(self._timeout_s / 3):
                    connection = await self._attach()
            except TimeoutError:
                continue
            if connection is None:
                self._change(State.EXPIRED)
                self.session_id = 0
                continue
            self._connection = connection
            self._change(State.CONNECTED)
            await self._stay(connection)
            self._detach(connection)
            await asyncio.sleep(0.05)

    async def _attach(self) -> Connection | None:
        """A new connection; None when the ensemble has forgotten the session."""
        connection = Connection(self._loop, self._process, self._host)
        try:
            number = await self._exchange(connection, self._greet, connection, self.session_id)
        except BaseException:
            connection.close()
            raise
        if number is None:
            connection.close()
            return None
        self.session_id = number
        return connection

    def _greet(self, connection: Connection, number: int) -> int | None:
        session = self._zk.find(number) if number else self._zk.begin(self._timeout_s)
        if session is None:
            return None
        session.disconnect()  # an earlier connection's watches
        connection.session = session
        session.fire = lambda kind, path: connection.down.send(self._fire_watches, kind, path)
        return session.id

    async def _stay(self, connection: Connection) -> None:
        """Ping until the connection breaks, or nothing was heard for two thirds of the timeout."""
        while connection.is_open:
            connection.up.send(self._ping, connection)
            await asyncio.sleep(self._timeout_s / 6)
            if self._loop.time() - self._heard_s > self._timeout_s * 2 / 3:
                return

    def _ping(self, connection: Connection) -> None:
        if self._is_alive(connection):
            connection.down.send(self._hear)

    def _is_alive(self, connection: Connection) -> bool:
        """At the server: whether the session is alive; one that expired hangs up."""
        session = connection.session
        if session is None:
            return True
        if not session.is_open:
            connection.down.send(connection.close)
            return False
        self._zk.touch(session)
        return True

    def _hear(self) -> None:
        self._heard_s = self._loop.time()

    def _detach(self, connection: Connection) -> None:
        connection.close()
        self._connection = None
        self._change(State.SUSPENDED)
        for future in list(connection.waiting):
            if not future.done():
                future.set_exception(ConnectionLoss())
        watches, self._watches = self._watches, {}
        for (_, path), callbacks in watches.items():
            for watch in callbacks:
                watch(path)

    def _change(self, state: State) -> None:
        if self._closing:
            return
        self.state = state
        if state is State.CONNECTED:
            self._connected.set()
        else:
            self._connected.clear()
        self._loop.note("zk", self._process, state.name, self.session_id)
        for callback in self._callbacks:
            callback(state)

    # calls

    async def _exchange(self, connection: Connection, serve: Callable[..., Any], *args: Any) -> Any:
        future: asyncio.Future[Any] = self._loop.create_future()
        connection.waiting[future] = None
        connection.up.send(self._serve, connection, future, serve, args)
        try:
            return await future
        finally:
            del connection.waiting[future]

    def _serve(
        self,
        connection: Connection,
        future: asyncio.Future[Any],
        serve: Callable[..., Any],
        args: tuple[Any, ...],
    ) -> None:
        if not self._is_alive(connection):
            return
        try:
            result, error = serve(*args), None
        except (KazooException, MultiFailed) as raised:
            result, error = None, raised
        if connection.loses_next_answer and serve.__name__ in ("create", "set", "delete", "multi"):
            self._loop.note("zk", self._process, "answer lost", serve.__name__)
            connection.close()
            return
        connection.down.send(self._set_answer, future, result, error)

    def _set_answer(
        self, future: asyncio.Future[Any], result: Any, error: Exception | None
    ) -> None:
        self._hear()
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)

    async def _write(self, serve: Callable[..., Any], *args: Any) -> Any:
        while True:
            await self._connected.wait()
            if self._closing:
                raise SessionClosed
            if self._connection is not None:
                return await self._exchange(self._connection, serve, *args)

    async def _read(self, serve: Callable[..., Any], *args: Any) -> Any:
        while True:
            try:
                return await self._write(serve, *args)
            except LOST:
                continue

    def _read_and_watch(
        self, kind: str, path: str, watch: Watch | None, read: Callable[[str], Any]
    ) -> Callable[[], Any]:
        """The read, and the watch set in the same instant at the server."""

        def serve() -> Any:
            try:
                return read(path)
            finally:
                self._set_watch(kind, path, watch, read)

        return serve

    def _set_watch(
        self, kind: str, path: str, watch: Watch | None, read: Callable[[str], Any]
    ) -> None:
        connection = self._connection
        if watch is None or connection is None or connection.session is None:
            return
        if self._zk.exists(path) is None and read != self._zk.exists:
            return
        watches = connection.session.data_watches if kind == "data" else (
            connection.session.child_watches)  # fmt: skip
        watches[path] = None
        self._watches.setdefault((kind, path), {})[watch] = None

    def _fire_watches(self, kind: str, path: str) -> None:
        for watch in self._watches.pop((kind, path), {}):
            watch(path)

    async def get(self, path: str, watch: Watch | None = None) -> tuple[bytes, Stat]:
        answer: tuple[bytes, Stat] = await self._read(
            self._read_and_watch("data", path, watch, self._zk.get)
        )
        return answer

    async def exists(self, path: str, watch: Watch | None = None) -> Stat | None:
        answer: Stat | None = await self._read(
            self._read_and_watch("data", path, watch, self._zk.exists)
        )
        return answer

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        answer: list[str] = await self._read(
            self._read_and_watch("child", path, watch, self._zk.children)
        )
        return answer

    async def sync(self, path: str) -> None:
        await self._read(self._zk.exists, path)  # there is one server

    async def create(
        self,
        path: str,
        data: bytes = b"",
        *,
        ephemeral: bool = False,
        sequence: bool = False,
        make_parents: bool = False,
    ) -> tuple[str, Stat]:
        def create() -> tuple[str, Stat]:
            session = self._zk.find(self.session_id)
            op = Create(path, data, ephemeral)
            return self._zk.create(session, op, sequence=sequence, make_parents=make_parents)

        made: tuple[str, Stat] = await self._write(create)
        return made

    async def ensure(self, path: str) -> None:
        await self._read(self._zk.ensure, path)

    async def set(self, path: str, data: bytes, version: int = -1) -> Stat:
        stat: Stat = await self._write(self._zk.set, path, data, version)
        return stat

    async def delete(self, path: str, version: int = -1) -> None:
        await self._write(self._zk.delete, path, version)

    async def multi(self, ops: Sequence[Op]) -> list[Any]:
        def multi() -> list[Any]:
            return self._zk.multi(self._zk.find(self.session_id), ops)

        results: list[Any] = await self._write(multi)
        return results
