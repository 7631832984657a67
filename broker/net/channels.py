"""Channels to other brokers: one connection for each broker and purpose, responses in order."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from dataclasses import dataclass
from typing import Any, cast

from urteil.broker.net.host_names import Resolver
from urteil.broker.net.listener_security import ListenerSecurity
from urteil.broker.net.sasl_client import log_in
from urteil.broker.wire.framing import RequestHeader, decode_response, encode_request
from urteil.broker.wire.primitives import WireError

log = logging.getLogger("channels")

BACKOFF_MIN_S = 0.05
BACKOFF_MAX_S = 1.0
RENEWED_AFTER = 0.85  # of a session: Apache Kafka reauthenticates no earlier
MAX_RESPONSE_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address at which a broker reaches another one."""

    id: int
    host: str
    port: int


class Channels:
    """Typed requests to other brokers. A failed channel closes; the next request connects again.

    After a failed connect, later requests to the same broker and purpose wait for a backoff that
    grows to 1 s. Callers may therefore retry at once without a busy loop.
    """

    def __init__(
        self,
        client_id: str,
        resolver: Resolver,
        listener_security: ListenerSecurity | None = None,
        setup_timeout_ms: int = 10_000,
    ) -> None:
        """`listener_security` belongs to the inter-broker listener; None for PLAINTEXT.
        `setup_timeout_ms` limits a connect, with TLS handshake and authentication."""
        self._setup_timeout_s = setup_timeout_ms / 1000
        self._client_id = client_id
        self._resolver = resolver
        self._listener_security = listener_security
        self._channels: dict[tuple[Endpoint, str], _Channel] = {}

    async def send(
        self, node: Endpoint, msg: Any, version: int, timeout_ms: float, *, purpose: str = "default"
    ) -> Any:
        """Send one request and return its decoded response.

        Raises ConnectionError if the broker is unreachable or closes the connection. Raises
        TimeoutError after `timeout_ms` and closes the connection, since its next response would
        have no request.
        """
        key = (node, purpose)
        channel = self._channels.get(key)
        if channel is None:
            channel = self._channels[key] = _Channel(
                node,
                self._client_id,
                self._resolver,
                self._listener_security,
                self._setup_timeout_s,
            )
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                return await channel.call(msg, version)
        except TimeoutError:
            channel.close()
            raise

    def forget(self, node_id: int) -> None:
        """Close all connections to a broker that left the cluster."""
        for key in [key for key in self._channels if key[0].id == node_id]:
            self._channels.pop(key).retire()

    def close(self) -> None:
        for channel in self._channels.values():
            channel.retire()
        self._channels.clear()


class _Channel:
    def __init__(
        self,
        node: Endpoint,
        client_id: str,
        resolver: Resolver,
        listener_security: ListenerSecurity | None,
        setup_timeout_s: float,
    ) -> None:
        self._setup_timeout_s = setup_timeout_s
        self._node = node
        self._listener_security = listener_security
        self._client_id = client_id
        self._resolver = resolver
        self._renewing: asyncio.Task[_Link] | None = None
        self._link: _Link | None = None
        self._backoff_s = 0.0
        self._correlation_id = 0
        self._retired = False

    async def call(self, msg: Any, version: int) -> Any:
        return await self._exchange(await self._open_link(), msg, version)

    async def _exchange(self, link: _Link, msg: Any, version: int) -> Any:
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        header = RequestHeader(msg.KEY, version, self._correlation_id, self._client_id)
        frame = await link.exchange(encode_request(header, msg))
        try:
            correlation_id, response = decode_response(msg.KEY, version, frame)
        except WireError as error:
            link.close()
            raise ConnectionError(f"broker {self._node.id} breaks the protocol: {error}") from None
        if correlation_id != header.correlation_id:
            link.close()
            raise ConnectionError(f"broker {self._node.id} answered another request")
        return response

    async def _open_link(self) -> _Link:
        """Return the connection. Concurrent requests share one attempt to connect; a cancelled
        request does not cancel it."""
        link = self._link
        if link is not None and link.open and not link.is_due():
            return link
        if self._renewing is None or self._renewing.done():
            self._renewing = asyncio.create_task(self._renew(link))
            self._renewing.add_done_callback(_retrieve)
        return await asyncio.shield(self._renewing)

    async def _renew(self, link: _Link | None) -> _Link:
        if link is not None and link.open:  # the session ends soon (KIP-368)
            async with asyncio.timeout(self._setup_timeout_s):
                await self._log_in(link)
            return link
        if self._backoff_s:
            await asyncio.sleep(self._backoff_s)
        try:
            self._link = await self._connect()
        except OSError as error:
            self._backoff_s = min(max(BACKOFF_MIN_S, self._backoff_s * 2), BACKOFF_MAX_S)
            raise ConnectionError(f"broker {self._node.id}: {error}") from error
        if self._retired:  # retired while connecting: nothing else would close this connection
            self._link.close()
            raise ConnectionError(f"broker {self._node.id} left the cluster")
        return self._link

    async def _connect(self) -> _Link:
        loop = asyncio.get_running_loop()
        host = self._resolver.resolve(self._node.host)
        tls = None if self._listener_security is None else self._listener_security.to_peers
        async with asyncio.timeout(self._setup_timeout_s):
            _, link = await loop.create_connection(
                lambda: _Link(self._on_response),
                host,
                self._node.port,
                ssl=tls,
                server_hostname=self._node.host if tls else None,
            )
            await self._log_in(link)
        return link

    async def _log_in(self, link: _Link) -> None:
        login = (
            None
            if self._listener_security is None
            else self._listener_security.login(self._node.host)
        )
        if login is None:
            return
        try:
            lifetime_ms = await log_in(
                lambda msg, version: self._exchange(link, msg, version), *login
            )
        except BaseException:
            link.close()
            raise
        now_s = asyncio.get_running_loop().time()
        link.renew_at_s = now_s + lifetime_ms * RENEWED_AFTER / 1000 if lifetime_ms else None

    def _on_response(self) -> None:
        self._backoff_s = 0.0

    def close(self) -> None:
        if self._link is not None:
            self._link.close()

    def retire(self) -> None:
        """Close the channel permanently."""
        self._retired = True
        self.close()


def _retrieve(attempt: asyncio.Task[_Link]) -> None:
    """Retrieve the exception, so that an attempt without waiters causes no warning."""
    if not attempt.cancelled():
        attempt.exception()


class _Link(asyncio.Protocol):
    """A connection that writes requests and hands each response to the oldest waiting request."""

    def __init__(self, answered: Any) -> None:
        self.open = False
        self.renew_at_s: float | None = None  # when to authenticate again, in s of the loop's clock
        self._on_response = answered
        self._transport: asyncio.Transport | None = None
        self._waiting: deque[asyncio.Future[memoryview]] = deque()
        self._chunks: list[bytes] = []
        self._have = 0
        self._need = 4
        self._in_size = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is not a subclass
        self.open = True

    def is_due(self) -> bool:
        """Whether the connection must authenticate again."""
        return self.renew_at_s is not None and self.renew_at_s <= asyncio.get_running_loop().time()

    async def exchange(self, buffers: list[Any]) -> memoryview:
        if not self.open or self._transport is None:
            raise ConnectionError("connection closed")
        future: asyncio.Future[memoryview] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        self._transport.writelines(buffers)
        return await future

    def data_received(self, data: bytes) -> None:
        self._chunks.append(data)
        self._have += len(data)
        while self._have >= self._need:
            if not self._frame(self._take()):
                return

    def _take(self) -> memoryview:
        received = self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
        view = memoryview(received)
        rest = received[self._need :]
        self._chunks = [rest] if rest else []
        self._have = len(rest)
        return view[: self._need]

    def _frame(self, view: memoryview) -> bool:
        if self._in_size:
            self._need = int.from_bytes(view, "big", signed=True)
            self._in_size = False
            if not 4 <= self._need <= MAX_RESPONSE_BYTES:
                self.close()
                return False
            return True
        self._in_size, self._need = True, 4
        if not self._waiting:
            self.close()
            return False
        self._on_response()
        future = self._waiting.popleft()
        if not future.done():
            future.set_result(view)
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        self.open = False
        while self._waiting:
            future = self._waiting.popleft()
            if not future.done():
                future.set_exception(ConnectionError("the peer closed the connection"))
                future.exception()  # no warning if the waiting request is cancelled

    def close(self) -> None:
        self.open = False
        if self._transport is not None:
            self._transport.abort()
