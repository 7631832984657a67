"""TLS between a socket's transport and a connection.

The event loops have two ways to TLS, each with a fault that this transport avoids. `start_tls` may
lose bytes that a client sends before the loop runs it. A server created with an SSL context cannot
replace the context, and reports no connection before its handshake.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Callable, Iterable
from typing import Any

from urteil.broker.base.one_per_turn import OnePerTurn

READ_BYTES = 256 * 1024
RECORD_BYTES = 16 * 1024


class TlsTransport(asyncio.Transport, asyncio.Protocol):
    """The server side of TLS, between the socket's transport `raw` and the protocol `above`.

    `on_handshake` is called once: with None after the handshake, or with its error. Later events go
    to `above`. Received bytes are decrypted at once; while reading is paused, they stay encrypted,
    at most one chunk of the socket. Written bytes are encrypted at once, and the buffer limits of
    `raw` apply. A step of a handshake signs for a millisecond, so it waits in the queue
    `handshakes`, which all clients share.
    """

    def __init__(
        self,
        raw: asyncio.Transport,
        context: ssl.SSLContext,
        above: asyncio.Protocol,
        on_handshake: Callable[[Exception | None], None],
        handshakes: OnePerTurn,
    ) -> None:
        super().__init__()
        self._raw = raw
        self._above = above
        self._on_handshake = on_handshake
        self._received, self._to_send = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._received, self._to_send, server_side=True)
        self._handshakes = handshakes
        self._is_queued = False  # a step of the handshake is in `handshakes`
        self._is_ready = False
        self._is_reading = True
        raw.set_protocol(self)

    # -- called by the socket ----------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        self._received.write(data)
        if self._is_ready:
            self._decrypt()
        elif not self._is_queued:
            self._is_queued = True
            self._handshakes.put(self._continue_handshake)

    def _continue_handshake(self) -> None:
        """Continue the handshake, then read the bytes that followed it."""
        if not self._is_queued or self._raw.is_closing():
            return
        self._is_queued = False
        self._do_handshake()
        if self._is_ready:
            self._decrypt()

    def _do_handshake(self) -> None:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
            return
        except ssl.SSLError as error:
            self._flush()  # the alert with the reason
            self._on_handshake(error)
            self._raw.close()
            return
        self._flush()
        self._is_ready = True
        self._on_handshake(None)

    def _decrypt(self) -> None:
        pieces, is_over = [], False
        try:
            while self._is_reading and not self._raw.is_closing():
                piece = self._tls.read(READ_BYTES)
                if not piece:
                    is_over = True
                    break
                pieces.append(piece)
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError:  # the peer's close_notify too
            is_over = True
        self._flush()
        if pieces:
            self._above.data_received(pieces[0] if len(pieces) == 1 else b"".join(pieces))
        if is_over and not self._above.eof_received():
            self.close()

    def eof_received(self) -> bool:
        self._continue_handshake()  # with the last bytes received
        if not self._is_ready:
            self._on_handshake(ConnectionResetError("the peer hung up"))
        return bool(self._above.eof_received())

    def connection_lost(self, exc: Exception | None) -> None:
        self._above.connection_lost(exc)

    def pause_writing(self) -> None:
        self._above.pause_writing()

    def resume_writing(self) -> None:
        self._above.resume_writing()

    # -- called by the connection ------------------------------------------------------------------

    def write(self, data: Any) -> None:
        self.writelines((data,))

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        if self._raw.is_closing():
            return
        buffers = list(list_of_data)
        if len(buffers) > 1 and sum(map(len, buffers)) <= RECORD_BYTES:
            buffers = [b"".join(buffers)]
        for buffer in buffers:
            if len(buffer):
                self._tls.write(buffer)
        self._flush()

    def _flush(self) -> None:
        if self._to_send.pending:
            self._raw.write(self._to_send.read())

    def pause_reading(self) -> None:
        self._is_reading = False
        self._raw.pause_reading()

    def resume_reading(self) -> None:
        self._is_reading = True
        self._raw.resume_reading()
        asyncio.get_running_loop().call_soon(self._decrypt)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._raw.set_write_buffer_limits(high, low)

    def get_write_buffer_size(self) -> int:
        return self._raw.get_write_buffer_size()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._tls if name == "ssl_object" else self._raw.get_extra_info(name, default)

    def is_closing(self) -> bool:
        return self._raw.is_closing()

    def close(self) -> None:
        """Send close_notify and all written bytes; do not wait for the peer's close_notify."""
        if self._is_ready and not self._raw.is_closing():
            with contextlib.suppress(ssl.SSLError):  # the peer's close_notify has not arrived
                self._tls.unwrap()
            self._flush()
        self._raw.close()

    def abort(self) -> None:
        self._raw.abort()
