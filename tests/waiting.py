"""Waiting for what nothing announces."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")
LONG_S = 60.0
"""On a machine that others keep busy; only a failure takes so long."""
POLL_S = 0.02


def until(reached: Callable[[], Found], what: str = "", *, deadline_s: float = LONG_S) -> Found:
    """What `reached` gives as soon as it is true; AssertionError with `what` after the deadline."""
    deadline = time.monotonic() + deadline_s
    while not (found := reached()):
        assert time.monotonic() < deadline, f"waited {deadline_s:g} s: {what or reached}"
        time.sleep(POLL_S)
    return found
