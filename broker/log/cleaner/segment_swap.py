"""Putting a cleaned segment in the place of others, so that a crash at any step loses nothing.

As Apache Kafka does it (`LocalLog.replaceSegments`): `.cleaned` becomes `.swap` once it is whole,
the segments it replaces become `.deleted`, `.swap` loses its suffix. What a crash leaves is
settled by `log.unfinished_files` at the next start.
"""

from __future__ import annotations

from pathlib import Path

from urteil.broker.log.file_names import CLEANED, INDEX, LOG, SWAP, TIME_INDEX, TXN_INDEX, file_name
from urteil.broker.log.storage import Storage

# the log's own file last: beside its `.swap` all the others are whole, too
_KINDS = (INDEX, TIME_INDEX, TXN_INDEX, LOG)


def announce(storage: Storage, directory: Path, base_offset: int) -> None:
    """Turn `.cleaned` into `.swap`, durably: from here on the new segment counts."""
    _rename(storage, directory, base_offset, CLEANED, SWAP)
    storage.sync_directory(directory)


def install(storage: Storage, directory: Path, base_offset: int) -> None:
    """Turn `.swap` into the segment itself."""
    _rename(storage, directory, base_offset, SWAP, "")


def discard(storage: Storage, directory: Path, base_offset: int) -> None:
    """Remove what a cleaning wrote that is not wanted any more."""
    for kind in _KINDS:
        storage.remove(directory / file_name(base_offset, kind + CLEANED))


def _rename(storage: Storage, directory: Path, base_offset: int, old: str, new: str) -> None:
    for kind in _KINDS:
        source = directory / file_name(base_offset, kind + old)
        if storage.exists(source):
            storage.rename(source, directory / file_name(base_offset, kind + new))
