"""A client connection: splits frames, serves one request at a time, sends responses in order."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, cast

from urteil.broker.base import remote_time
from urteil.broker.net.sendfile import SocketWriter, contains_files, send_by_transport
from urteil.broker.net.tls_transport import TlsTransport
from urteil.broker.net.unread_input import UnreadInput
from urteil.broker.security.principals import ANONYMOUS

if TYPE_CHECKING:
    from urteil.broker.net.listener_security import ListenerSecurity

log = logging.getLogger("connection")

# Serves one frame: returns the buffers of the response, or None. Raises Hangup to close.
Answer = Callable[["Connection", memoryview], Awaitable["list[Any] | None"]]

MAX_QUEUED_FRAMES = 16
WRITE_HIGH_BYTES = 1024 * 1024


class Hangup(Exception):
    """Close the connection, after the response `last` if there is one: the peer broke the protocol,
    or no response is possible."""

    def __init__(self, why: str = "", last: list[Any] | None = None) -> None:
        super().__init__(*filter(None, (why,)))
        self.last = last


class Connection(asyncio.Protocol):
    """Splits the stream into frames and serves them strictly one after another.

    A frame inside one received chunk is a view of that chunk. A frame over several chunks is a view
    of a buffer that grows with the bytes received, never with the announced length. Reading pauses
    while `MAX_QUEUED_FRAMES` requests wait. No request starts while the peer does not read its
    responses. A size below 0 or above `max_frame_bytes` closes the connection after the responses
    to earlier requests.

    Requests that wait when the peer closes are still served: a producer with acks=0 sends and
    closes. A running request whose peer closes is completed, because it may be half done (a
    decision in the log must take effect); one that `only_reads` is cancelled.
    """

    __slots__ = (
        "_admit",
        "_frames",
        "_held",
        "_is_encrypted",
        "_is_over",
        "_listener_security",
        "_need",
        "_on_close",
        "_partial",
        "_paused",
        "_refused",
        "_server_task",
        "_transport",
        "_wakeup",
        "_writable",
        "answer",
        "busy",
        "complained",
        "last_active_s",
        "listener",
        "max_frame_bytes",
        "muted_s",
        "only_reads",
        "peer_host",
        "principal",
        "protocol",
        "time",
        "waits",
    )  # fmt: skip

    def __init__(
        self,
        listener: str,
        max_frame_bytes: int,
        answer: Answer,
        on_open: Callable[[Connection], None],
        on_close: Callable[[Connection], None],
        listener_security: ListenerSecurity | None = None,
        admit: Callable[[Connection], bool] = lambda _: True,
    ) -> None:
        self.listener = listener
        self.protocol = listener_security.protocol if listener_security else "PLAINTEXT"
        self.principal = ANONYMOUS
        self.peer_host = ""
        self.complained = False
        self.muted_s = 0.0  # for how long nothing is read after this response
        self.busy = False  # a request is in progress and nothing of its response is sent
        self.only_reads = False  # the request in progress changes nothing
        self.last_active_s = 0.0  # a request arrived, its response is ready, or is sent
        self.time: Callable[[], float] = float  # the loop's clock in s, once connected
        self.waits = remote_time.Waits()
        self.max_frame_bytes = max_frame_bytes
        self.answer = answer
        self._listener_security = listener_security
        self._admit = admit
        self._held: UnreadInput | None = None
        self._is_encrypted = False
        self._on_close = on_close
        self._transport: asyncio.Transport | None = None
        self._server_task: asyncio.Task[None] | None = None
        self._partial: bytearray | None = None
        self._need = 4
        self._frames: deque[memoryview] = deque()
        self._paused = False
        self._refused = ""  # why reading has ended
        self._is_over = False  # the peer has closed its direction
        self._wakeup: asyncio.Future[None] | None = None
        self._writable: asyncio.Future[None] | None = None
        on_open(self)

    # -- called by the transport -------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is not a subclass
        self._transport.set_write_buffer_limits(high=WRITE_HIGH_BYTES)
        peer = transport.get_extra_info("peername")
        self.peer_host = peer[0] if peer else ""
        self.time = asyncio.get_running_loop().time
        self.last_active_s = self.time()
        if self._admit(self):
            self._enter()

    def hold(self) -> None:
        """Read and serve nothing until `go_on`."""
        if self._held is None:
            self._held = UnreadInput(self._open_transport(), self)

    def serve_held(self) -> None:
        """Serve a connection that was held."""
        held, self._held = self._held, None
        if held is None or self._transport is None:
            return
        early = held.release()
        self._note_activity()
        self._enter()
        if early and self._transport is not None:
            above = self._transport if isinstance(self._transport, TlsTransport) else self
            above.data_received(early)

    def _enter(self) -> None:
        listener_security = self._listener_security
        if listener_security is None or listener_security.for_clients is None:
            self._begin()
        else:
            self._is_encrypted = True
            raw = self._open_transport()
            self._transport = TlsTransport(
                raw,
                listener_security.for_clients,
                self,
                self._on_handshake_end,
                listener_security.handshakes,
            )

    def _on_handshake_end(self, error: Exception | None) -> None:
        """The TLS handshake succeeded, or failed with `error`."""
        assert self._listener_security is not None
        try:
            if error is not None:
                raise error
            tls = self._open_transport().get_extra_info("ssl_object")
            self.principal = self._listener_security.principal(tls)
        except (OSError, ValueError) as refusal:
            self.complain(f"SSL handshake failed: {refusal}")
            self.close()
            return
        self._note_activity()
        self._begin()

    def _begin(self) -> None:
        if self._listener_security is not None:
            self._listener_security.guard(self)
        self._server_task = asyncio.get_running_loop().create_task(self._serve())

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        if self._partial is None:
            self._split(data)
        else:
            self._partial += data
            if len(self._partial) >= self._need:
                whole, self._partial = self._partial, None
                self._split(whole)
        if self._frames or self._refused:
            self.last_active_s = self.time()
            self._wake()
            if len(self._frames) >= MAX_QUEUED_FRAMES and not self._paused:
                self._paused = True
                self._open_transport().pause_reading()

    def _split(self, whole: bytes | bytearray) -> None:
        view, at, end = memoryview(whole), 0, len(whole)
        self._need = 4
        while end - at >= 4:
            size = int.from_bytes(view[at : at + 4], "big", signed=True)
            if not 0 <= size <= self.max_frame_bytes:
                self._refused = f"frame size {size} out of range"
                return
            if end - at - 4 < size:
                self._need = 4 + size
                break
            self._frames.append(view[at + 4 : at + 4 + size])
            at += 4 + size
        if at < end:
            self._partial = bytearray(view[at:])

    def eof_received(self) -> bool:
        """The peer sends nothing more. Requests that it sent are served (a producer with acks=0
        closes so)."""
        self._is_over = self._is_over or bool(self._frames)
        return self._is_over

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._frames.clear()
        self._partial = None
        if self._server_task is not None and (self.only_reads or not self.busy):
            self._server_task.cancel()
        self.resume_writing()
        self._on_close(self)

    def pause_writing(self) -> None:
        self._writable = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        self._writable = None

    # -- called by the broker ----------------------------------------------------------------------

    async def _serve(self) -> None:
        remote_time.begin(self.waits)
        try:
            while True:
                frame = await self._next_frame()
                self.busy = True
                await self._send(await self.answer(self, frame))
                if self._frames:
                    await asyncio.sleep(0)  # a client with many requests does not delay the others
                if self.muted_s:
                    self.muted_s = await asyncio.sleep(self.muted_s, 0.0)
        except Hangup as reason:
            if reason.args:
                self.complain(str(reason))
            if reason.last and self._transport is not None:
                self._transport.writelines(reason.last)
            self.close()
        except ConnectionError:
            self.close()
        except OSError as error:
            self.complain(f"an answer cannot be read from its file: {error}")
            self.close()
        except Exception:  # a bug of ours: the peer must not wait for a response in vain
            log.exception("a connection from %s on %s failed", self.peer_host, self.listener)
            self.close()

    async def _send(self, buffers: list[Any] | None) -> None:
        self.busy = False
        if buffers is None:
            return
        if len(buffers) > 1 and contains_files(buffers):
            await self._send_with_files(buffers)
        else:
            self._open_transport().writelines(buffers)

    async def _send_with_files(self, buffers: list[Any]) -> None:
        """Send files with sendfile, once the transport has sent everything before; with TLS through
        the transport, as fast as the peer reads."""
        transport = self._open_transport()
        if self._is_encrypted:
            await send_by_transport(transport, buffers, self._drain)
            return
        if transport.get_write_buffer_size():
            transport.set_write_buffer_limits(high=0)
            if self._writable is not None:
                await self._writable
            self._open_transport().set_write_buffer_limits(high=WRITE_HIGH_BYTES)
        with SocketWriter(self._open_transport(), self._note_activity) as outlet:
            await outlet.send(buffers)

    async def _drain(self) -> None:
        """Wait until the peer has read most of the written bytes."""
        if self._writable is not None:
            await self._writable
        self._open_transport()
        self._note_activity()

    def _note_activity(self) -> None:
        self.last_active_s = self.time()

    async def _next_frame(self) -> memoryview:
        if self._writable is not None:
            await self._writable
        while not self._frames:
            self._open_transport()
            if self._refused or self._is_over:
                raise Hangup(self._refused)
            self._wakeup = asyncio.get_running_loop().create_future()
            await self._wakeup
        frame = self._frames.popleft()
        if self._paused and len(self._frames) < MAX_QUEUED_FRAMES // 2:
            self._paused = False
            self._open_transport().resume_reading()
        return frame

    def _wake(self) -> None:
        if self._wakeup is not None and not self._wakeup.done():
            self._wakeup.set_result(None)

    def _open_transport(self) -> asyncio.Transport:
        if self._transport is None:
            raise ConnectionResetError("the peer hung up")
        return self._transport

    @property
    def is_serving(self) -> bool:
        """Whether a request is in progress, possibly of a peer that has closed."""
        return self._server_task is not None and not self._server_task.done()

    async def finish(self) -> None:
        """Close without sending what is left, and wait until no request is in progress."""
        if self._transport is not None:
            self._transport.abort()
        if self._server_task is not None:
            self._server_task.cancel()
            await asyncio.gather(self._server_task, return_exceptions=True)

    def mute(self, seconds: float) -> None:
        """Answer this request, then read nothing from the peer for `seconds`."""
        self.muted_s = max(self.muted_s, seconds)

    def complain(self, what: str) -> None:
        """Log an error of this peer, once a connection at most."""
        if not self.complained:
            self.complained = True
            log.warning("closing connection from %s on %s: %s", self.peer_host, self.listener, what)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def close_idle(self) -> None:
        """Close without waiting for a peer that has stopped reading."""
        if self._transport is not None and self._writable is not None:
            self._transport.abort()
        self.close()
