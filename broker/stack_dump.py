"""Where the broker stands, told on its standard error on SIGQUIT, as a JVM tells it."""

from __future__ import annotations

import asyncio
import faulthandler
import signal
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any, TextIO


def tell_on_sigquit(loop: asyncio.AbstractEventLoop) -> None:
    """From now on: all threads at once, also where the loop hangs, then what each task awaits."""
    loop.add_signal_handler(signal.SIGQUIT, tell_tasks, sys.stderr)
    faulthandler.register(signal.SIGQUIT, file=sys.stderr, all_threads=True, chain=True)


def tell_tasks(out: TextIO) -> None:
    """A line a task of the running loop, and one for each coroutine that it waits in."""
    for task in sorted(asyncio.all_tasks(), key=lambda one: one.get_name()):
        print(f"Task {task.get_name()}:", file=out)
        for frame in _frames(task.get_coro()):
            code = frame.f_code
            print(f'  File "{code.co_filename}", line {frame.f_lineno} in {code.co_qualname}',
                  file=out)  # fmt: skip
    out.flush()


def _frames(awaited: Any) -> Iterator[FrameType]:
    """The outermost first."""
    while awaited is not None:
        frame = getattr(awaited, "cr_frame", None) or getattr(awaited, "gi_frame", None)
        if frame is not None:
            yield frame
        awaited = getattr(awaited, "cr_await", None) or getattr(awaited, "gi_yieldfrom", None)
