"""Names of the files of a log: a base offset in 20 digits and a suffix, as in Apache Kafka."""

from __future__ import annotations

import logging
from pathlib import Path

from urteil.broker.log.storage import Storage

LOG = ".log"
INDEX = ".index"
TIME_INDEX = ".timeindex"
TXN_INDEX = ".txnindex"
SNAPSHOT = ".snapshot"
DELETED = ".deleted"
CLEANED = ".cleaned"
SWAP = ".swap"

_log = logging.getLogger("urteil.broker.log")


def file_name(offset: int, suffix: str) -> str:
    """The name of a file: the offset in 20 digits, then the suffix."""
    return f"{offset:020d}{suffix}"


def list_base_offsets(storage: Storage, directory: Path, suffix: str) -> list[int]:
    """The offsets in the names of the files with one suffix, ascending; other names are ignored."""
    offsets = []
    for name in storage.names(directory):
        stem = name.removesuffix(suffix)
        if stem != name and len(stem) == 20 and stem.isascii() and stem.isdigit():
            offsets.append(int(stem))
        elif name.endswith(suffix) and suffix in (LOG, SNAPSHOT):
            _log.warning("%s: not a file of a log, ignored", directory / name)
    return offsets
