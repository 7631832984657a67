"""The signals by which the lab controls clients."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator

CONTROL_SIGNALS = frozenset({signal.SIGUSR1, signal.SIGUSR2})


@contextlib.contextmanager
def blocked_signals() -> Iterator[None]:
    """Block the control signals for a child that starts meanwhile: the signal mask is inherited, so
    that an early signal waits for its handler instead of killing the child."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, CONTROL_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
