"""The state of a log directory's storage: working or failed (Kafka's `LogDirFailureChannel`)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

_log = logging.getLogger("urteil.broker.log")


def _ignore() -> None:
    pass


class DirectoryHealth:
    """Shared by a log directory and all logs in it; a failure is permanent.

    The content of a file after an I/O error is unknown. The first error therefore ends all writes
    in the directory (KAFKA-10778). `on_failure` is called within the failing write, on any thread.
    """

    __slots__ = ("_on_failure", "_path", "failure")

    def __init__(self, path: Path, on_failure: Callable[[], None] = _ignore) -> None:
        self._path = path
        self._on_failure = on_failure
        self.failure: OSError | None = None

    def fail(self, error: OSError) -> None:
        """Record the first error; later ones are ignored."""
        if self.failure is None:
            self.failure = error
            _log.error("%s: storage failed, no more writes there: %s", self._path, error)
            self._on_failure()
