"""The end of a client process: the stop signal, and signals that act on a client."""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable

from urteil.harness.wakeup_pipe import WakeupPipe

PARENT_CHECK_S = 1.0
HANGS_S = 12.0


class Stop:
    """Set by `request`, or when the parent process (the lab) is gone."""

    def __init__(self) -> None:
        self._wakeup = WakeupPipe()
        self._parent = os.getppid()
        self._next_check = 0.0

    def request(self) -> None:
        """May be called from a signal handler."""
        self._wakeup.wake()

    def is_set(self) -> bool:
        now = time.monotonic()
        if now >= self._next_check:
            self._next_check = now + PARENT_CHECK_S
            if os.getppid() != self._parent:
                self._wakeup.wake()
        return self._wakeup.is_woken

    def wait(self, seconds: float) -> None:
        """Return after `seconds`, or as soon as the stop is requested."""
        self._wakeup.wait(seconds)

    def wait_until_set(self) -> None:
        while not self.is_set():
            self.wait(PARENT_CHECK_S)


def stop_on_signals() -> Stop:
    """A stop that SIGTERM and SIGINT request; SIGQUIT prints the stacks. A client that does not end
    in time after the request writes its stacks to its log."""
    stop = Stop()

    def end(*_: object) -> None:
        stop.request()
        faulthandler.dump_traceback_later(HANGS_S)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    signal.signal(signal.SIGQUIT, lambda *_: print_stacks())
    return stop


def handle_signal(number: signal.Signals, act: Callable[[], object]) -> None:
    """Call `act` at each signal, also for a signal that arrived before
    (`ClientKind.handles_signals`)."""
    signal.signal(number, lambda *_: act())
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})


def print_stacks() -> None:
    """Print each thread's stack to standard error, for `harness/stack_dumps.py`. Python prints them
    while no other thread runs; faulthandler reads frames that change, and once crashed a client."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    for ident, frame in sys._current_frames().items():
        print(f"Thread {names.get(ident, ident)}:", file=sys.stderr)
        traceback.print_stack(frame)
    sys.stderr.flush()
