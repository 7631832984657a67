"""One offset checkpoint that is written off the event loop without ever going back in time."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from pathlib import Path

from urteil.broker.log import checkpoints
from urteil.broker.log.checkpoints import TopicPartition
from urteil.broker.log.storage import Storage


class CheckpointFile:
    """Rows are put by the owner of the logs and written by whichever thread comes first.

    Only the rows put last are written, and none of older ones once those are: so a write that
    waits in a queue can neither undo a newer one nor cost a second sync.
    """

    __slots__ = ("_path", "_rows", "_storage", "_writing")

    def __init__(self, storage: Storage, path: Path) -> None:
        self._storage = storage
        self._path = path
        self._rows: deque[Mapping[TopicPartition, int]] = deque(maxlen=1)
        self._writing = threading.Lock()

    def put(self, rows: Mapping[TopicPartition, int]) -> None:
        """What the file shall hold; `rows` must not change any more."""
        self._rows.append(rows)

    def write(self) -> None:
        """Return once everything put before is durable. Raises OSError."""
        with self._writing:
            try:
                rows = self._rows.pop()
            except IndexError:
                return
            checkpoints.write_offsets(self._storage, self._path, rows)
