"""A sync of a log's files that runs on a background thread."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from urteil.broker.log.directory_health import DirectoryHealth
from urteil.broker.log.storage import Storage


class FlushJob:
    """Syncs the files that hold the offsets below `upto`, through descriptors of its own.

    `done` is set at the end; a storage error is reported to `health`. Files that were removed
    meanwhile are skipped.
    """

    def __init__(
        self, storage: Storage, health: DirectoryHealth, directory: Path, files: Sequence[Path],
        upto: int, generation: int,
    ) -> None:  # fmt: skip
        self._storage = storage
        self._health = health
        self._directory = directory
        self._files = files
        self.upto = upto
        self.generation = generation
        self.done = False

    def run(self) -> None:
        try:
            for path in self._files:
                self._sync(path)
            self._storage.sync_directory(self._directory)
        except FileNotFoundError:
            pass  # the whole folder was renamed for deletion
        except OSError as error:
            self._health.fail(error)
        self.done = True

    def _sync(self, path: Path) -> None:
        try:
            file = self._storage.open(path)
        except FileNotFoundError:
            return
        try:
            file.sync()
        finally:
            file.close()
