"""Waits for conditions that send no signal: reads them until they hold, with a deadline.

Every such wait of chaos, harness and bench is a call of `until` or `retry`; there are no other
deadline loops. A process, a thread or an event has a wait of its own.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from typing import Protocol, TypeVar

POLL_S = 0.1

Value = TypeVar("Value")
Error = TypeVar("Error", bound=Exception)


class Stop(Protocol):
    """Ends a wait early: an event, or a client's request to stop."""

    def is_set(self) -> bool: ...

    def wait(self, seconds: float, /) -> object: ...


def until(
    read: Callable[[], Value],
    reached: Callable[[Value], object] = bool,
    *,
    deadline_s: float,
    poll_s: float = POLL_S,
    patience_s: float = math.inf,
    stop: Stop | None = None,
    monotonic_s: Callable[[], float] | None = None,
) -> Value:
    """Read every `poll_s` until the value is `reached`. Returns the last value.

    Gives up when `deadline_s` have passed, when the value has not changed for `patience_s`, or when
    `stop` is set: then the returned value is not `reached`. Reads at least once, and once more
    after the pause in which the deadline passes. With `operator.not_` as `reached`, `read` returns
    what is still wrong. `monotonic_s` and the pauses of `stop` may follow another time than this
    machine's.
    """
    stop, now_s = stop or threading.Event(), monotonic_s or time.monotonic
    began = changed = now_s()
    value = read()
    while not reached(value):
        if now_s() > min(began + deadline_s, changed + patience_s):
            break
        stop.wait(poll_s)
        if stop.is_set():
            break
        previous, value = value, read()
        if value != previous:
            changed = now_s()
    return value


def retry(
    act: Callable[[], Value],
    errors: type[Error],
    is_transient: Callable[[Error], bool] = lambda _error: True,
    *,
    deadline_s: float,
    poll_s: float = POLL_S,
    stop: Stop | None = None,
) -> Value:
    """Return the result of `act`, repeated every `poll_s` while it raises a transient error.

    Raises the error when `deadline_s` have passed or `stop` is set.
    """
    stop = stop or threading.Event()
    deadline = time.monotonic() + deadline_s
    while True:
        try:
            return act()
        except errors as error:
            if not is_transient(error) or time.monotonic() > deadline:
                raise
            stop.wait(poll_s)
            if stop.is_set():
                raise
