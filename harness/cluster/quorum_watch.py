"""Watches the controllers' `quorum-state` files, whose former versions leave no trace on disk."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from urteil.harness.evidence.readers.quorum_votes import read_quorum_state

POLL_S = 0.02


class QuorumWatch:
    """Appends a line to `journal` for each observed version of a file. `files` are by node id, and
    known at the start. A version of shorter duration than the poll's interval may be missed."""

    def __init__(self, files: Callable[[], Mapping[int, Path]], journal: Path) -> None:
        self._find = files
        self._files: Mapping[int, Path] = {}
        self._journal = journal
        self._seen: dict[int, tuple[int, int]] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="quorum-watch", daemon=True)

    def start(self) -> None:
        self._files = self._find()
        self._thread.start()

    def close(self) -> None:
        """Read the files once more, and end. Repeatable."""
        if self._thread.is_alive():
            self._ended.set()
            self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(POLL_S):
            self._look()
        self._look()

    def _look(self) -> None:
        for node, file in self._files.items():
            try:
                status = file.stat()
                version = (status.st_ino, status.st_mtime_ns)
                if version == self._seen.get(node):
                    continue
                row = {"broker": node, "at_ns": time.monotonic_ns(), **read_quorum_state(file)}
            except (FileNotFoundError, ValueError):  # a damaged file is reported after the run
                continue
            self._seen[node] = version
            with self._journal.open("a") as journal:
                journal.write(json.dumps(row) + "\n")
