"""A stack dump on standard error on SIGQUIT, as a JVM writes one."""

from __future__ import annotations

import asyncio
import faulthandler
import signal
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any, TextIO


def dump_on_sigquit(loop: asyncio.AbstractEventLoop) -> None:
    """On SIGQUIT, dump the stacks of all threads, also while the loop hangs, and then those of
    tasks."""
    loop.add_signal_handler(signal.SIGQUIT, dump_tasks, sys.stderr)
    faulthandler.register(signal.SIGQUIT, file=sys.stderr, all_threads=True, chain=True)


def dump_tasks(out: TextIO) -> None:
    """Write a line for each task of the running loop, and one for each coroutine that it awaits."""
    for task in sorted(asyncio.all_tasks(), key=lambda task: task.get_name()):
        print(f"Task {task.get_name()}:", file=out)
        for frame in _frames(task.get_coro()):
            code = frame.f_code
            print(f'  File "{code.co_filename}", line {frame.f_lineno} in {code.co_qualname}',
                  file=out)  # fmt: skip
    out.flush()


def _frames(awaited: Any) -> Iterator[FrameType]:
    """The frames, outermost first."""
    while awaited is not None:
        frame = getattr(awaited, "cr_frame", None) or getattr(awaited, "gi_frame", None)
        if frame is not None:
            yield frame
        awaited = getattr(awaited, "cr_await", None) or getattr(awaited, "gi_yieldfrom", None)
