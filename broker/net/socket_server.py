"""The listening sockets and the connections that they accepted."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Mapping
from functools import partial

from urteil.broker.config.listeners import Listener
from urteil.broker.net.connection import Answer, Connection
from urteil.broker.net.connection_limits import ConnectionLimits
from urteil.broker.net.host_names import Resolver
from urteil.broker.net.listener_security import ListenerSecurity
from urteil.broker.net.request_memory import MeteredConnection, RequestMemory

log = logging.getLogger("sockets")


class SocketServer:
    """Binds each listener's exact address and closes connections that are idle too long."""

    def __init__(
        self,
        *,
        max_frame_bytes: int,
        max_idle_ms: int,
        backlog: int,
        answer: Answer,
        secure_listeners: Mapping[str, ListenerSecurity] | None = None,
        limits: ConnectionLimits | None = None,
        max_queued_bytes: int = -1,
    ) -> None:
        """`secure_listeners` has the security of each listener that is not PLAINTEXT, by name.
        `max_queued_bytes` limits the memory of all requests; no limit below 1."""
        self._memory = RequestMemory(max_queued_bytes) if max_queued_bytes > 0 else None
        self._limits = limits
        self._entrances = secure_listeners or {}
        self._max_frame_bytes = max_frame_bytes
        self._max_idle_s = max_idle_ms / 1000
        self._backlog = backlog
        self._answer = answer
        self._servers: dict[str, asyncio.Server] = {}
        self._sweeper: asyncio.Task[None] | None = None
        self.connections: dict[Connection, None] = {}  # in order of arrival
        self._left: dict[Connection, None] = {}  # closed by the peer while a request is in progress

    async def listen(self, listeners: tuple[Listener, ...], resolver: Resolver) -> None:
        """Accept on every listener. Raises OSError if an address is in use or not local."""
        loop = asyncio.get_running_loop()
        if self._limits is not None:
            self._limits.set_listeners(listener.name for listener in listeners)
        for listener in listeners:
            host = resolver.resolve(listener.host) if listener.host else None
            server = await loop.create_server(
                lambda name=listener.name: self._connection(name),
                host,
                listener.port,
                backlog=self._backlog,
                reuse_address=True,
                family=socket.AF_UNSPEC if host else socket.AF_INET,
            )
            self._servers[listener.name] = server
            log.info("listening on %s://%s:%d", listener.name, listener.host, listener.port)
        if self._max_idle_s > 0:
            self._sweeper = loop.create_task(self._sweep())

    def bound_port(self, listener: str) -> int:
        """Return the bound port of a listener."""
        return int(self._servers[listener].sockets[0].getsockname()[1])

    def _connection(self, listener: str) -> Connection:
        kind: Callable[..., Connection] = Connection
        if self._memory is not None:
            kind = partial(MeteredConnection, self._memory)
        return kind(
            listener,
            self._max_frame_bytes,
            self._answer,
            self.connections.setdefault,
            self._on_closed,
            self._entrances.get(listener),
            *(() if self._limits is None else (self._limits.arrive,)),
        )

    def _on_closed(self, gone: Connection) -> None:
        self.connections.pop(gone, None)
        if self._limits is not None:
            self._limits.leave(gone)
        self._left = {
            connection: None for connection in (*self._left, gone) if connection.is_serving
        }

    async def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(min(self._max_idle_s / 2, 60.0))
            oldest = loop.time() - self._max_idle_s
            for connection in list(self.connections):
                if connection.last_active_s < oldest and not connection.busy:
                    connection.close_idle()

    async def close(self) -> None:
        """Stop accepting, close all connections, and wait for requests in progress."""
        if self._sweeper is not None:
            self._sweeper.cancel()
        for server in self._servers.values():
            server.close()
        known = [*self.connections, *self._left]
        await asyncio.gather(*(connection.finish() for connection in known))
