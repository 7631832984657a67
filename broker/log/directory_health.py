"""Whether the storage under a log directory still works (Kafka's `LogDirFailureChannel`)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

_log = logging.getLogger("urteil.broker.log")


def _nobody() -> None:
    """Nobody wants to hear of it."""


class DirectoryHealth:
    """Shared by a log directory and all logs in it; a failure is for good.

    What a file holds after an I/O error is not known: the first error ends all writes in the
    directory at once (KAFKA-10778), and `on_failure` is called, from within that write: on any
    thread.
    """

    __slots__ = ("_on_failure", "_path", "failure")

    def __init__(self, path: Path, on_failure: Callable[[], None] = _nobody) -> None:
        self._path = path
        self._on_failure = on_failure
        self.failure: OSError | None = None

    def fail(self, error: OSError) -> None:
        """Take note of the first failure."""
        if self.failure is None:
            self.failure = error
            _log.error("%s: storage failed, no more writes there: %s", self._path, error)
            self._on_failure()
