"""Replacement of segments by a cleaned one, safe against a crash at any step.

As in Apache Kafka (`LocalLog.replaceSegments`): a complete `.cleaned` file becomes `.swap`, the
replaced segments become `.deleted`, then `.swap` loses its suffix. After a crash the next start
completes or undoes the replacement (`log.unfinished_files`).
"""

from __future__ import annotations

from pathlib import Path

from urteil.broker.log.file_names import CLEANED, INDEX, LOG, SWAP, TIME_INDEX, TXN_INDEX, file_name
from urteil.broker.log.storage import Storage

# the `.log` file last: its `.swap` proves that the other files are complete, too
_KINDS = (INDEX, TIME_INDEX, TXN_INDEX, LOG)


def commit(storage: Storage, directory: Path, base_offset: int) -> None:
    """Rename `.cleaned` to `.swap`, durably: from now on the new segment is valid."""
    _rename(storage, directory, base_offset, CLEANED, SWAP)
    storage.sync_directory(directory)


def install(storage: Storage, directory: Path, base_offset: int) -> None:
    """Remove the suffix `.swap`."""
    _rename(storage, directory, base_offset, SWAP, "")


def discard(storage: Storage, directory: Path, base_offset: int) -> None:
    """Delete the `.cleaned` files of an abandoned cleaning."""
    for kind in _KINDS:
        storage.remove(directory / file_name(base_offset, kind + CLEANED))


def _rename(storage: Storage, directory: Path, base_offset: int, old: str, new: str) -> None:
    for kind in _KINDS:
        source = directory / file_name(base_offset, kind + old)
        if storage.exists(source):
            storage.rename(source, directory / file_name(base_offset, kind + new))
