"""The HTTP server of metrics: it answers `GET /metrics` and nothing else."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable

from urteil.broker.metrics.text_format import CONTENT_TYPE

log = logging.getLogger("metrics")

MAX_REQUEST_BYTES = 8192
MAX_OPEN = 16
DEADLINE_S = 10.0

Blocks = Callable[[], Iterable[str]]


class ScrapeServer:
    """Serves one request per connection, at most `MAX_OPEN` at a time, each within `DEADLINE_S`.

    `blocks()` yields the text in pieces; other tasks run between two of them. Malformed requests
    close the connection.
    """

    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks
        self._open = 0
        self._server: asyncio.Server | None = None

    async def listen(self, host: str, port: int) -> None:
        """Listen. Raises OSError with the setting's name if the address is in use or not local."""
        try:
            self._server = await asyncio.start_server(
                self._serve, host, port, limit=MAX_REQUEST_BYTES
            )
        except OSError as error:
            raise OSError(
                error.errno, f"urteil.metrics.listener {host}:{port}: {error.strerror}"
            ) from None
        log.info("metrics at http://%s:%d/metrics", host, port)

    def close(self) -> None:
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        try:
            if self._open <= MAX_OPEN:
                async with asyncio.timeout(DEADLINE_S):
                    await self._exchange(reader, writer)
        except (ConnectionError, TimeoutError):
            pass  # the peer closed, or neither writes nor reads
        except Exception:
            log.exception("a scrape failed")
        finally:
            self._open -= 1
            writer.transport.abort()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        status = _status(await _head(reader))
        body = await self._text() if status == "200 OK" else f"{status}\n"
        payload = body.encode()
        writer.write(
            f"HTTP/1.1 {status}\r\nContent-Type: {CONTENT_TYPE}\r\n"
            f"Content-Length: {len(payload)}\r\nConnection: close\r\n\r\n".encode()
            + payload
        )
        writer.close()
        await writer.wait_closed()

    async def _text(self) -> str:
        blocks = []
        for block in self._blocks():
            blocks.append(block)
            await asyncio.sleep(0)
        return "".join(blocks)


async def _head(reader: asyncio.StreamReader) -> bytes:
    """Read the head of the request; empty if it is truncated or too long."""
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        return b""


def _status(head: bytes) -> str:
    words = head.split(b"\r\n", 1)[0].split(b" ")
    if len(words) != 3 or not words[2].startswith(b"HTTP/1."):
        return "400 Bad Request"
    if words[0] == b"GET" and words[1].split(b"?", 1)[0] == b"/metrics":
        return "200 OK"
    return "404 Not Found"
