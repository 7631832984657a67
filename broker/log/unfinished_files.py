"""Files that a crash left in a log's folder during a deletion, compaction or write (`LogLoader`).

A compaction writes `.cleaned` files, renames them to `.swap` when they are complete, renames the
replaced segments to `.deleted`, and finally removes the suffix `.swap`. At the next start a
`.cleaned` file is incomplete and is deleted. A `.swap` file is complete and may be the only copy of
its records: its compaction is completed.
"""

from __future__ import annotations

import logging
import re
from pathlib import Path

from urteil.broker.log.batch_scan import read_batches
from urteil.broker.log.file_names import (
    CLEANED,
    DELETED,
    INDEX,
    LOG,
    SWAP,
    TIME_INDEX,
    TXN_INDEX,
    file_name,
    list_base_offsets,
)
from urteil.broker.log.storage import Storage
from urteil.broker.wire.batches import is_crc_valid

_log = logging.getLogger("urteil.broker.log")

_KINDS = (LOG, INDEX, TIME_INDEX, TXN_INDEX)
_SEGMENT_FILE = re.compile(r"([0-9]{20})(\.[a-z]+)(\.cleaned|\.swap)?")


def settle_unfinished_files(storage: Storage, directory: Path) -> None:
    """Delete incomplete and `.deleted` files, complete interrupted compactions. Raises OSError."""
    _remove(storage, directory, (DELETED, ".tmp"))
    unfinished = [
        int(match[1])
        for name in storage.names(directory)
        if (match := _SEGMENT_FILE.fullmatch(name)) and match[3] == CLEANED
    ]
    _remove(storage, directory, (CLEANED,))
    swapped = list_base_offsets(storage, directory, LOG + SWAP)
    # KAFKA-6264: after an incomplete file of the same split, later `.swap` files do not count
    complete = [base for base in swapped if not unfinished or base < min(unfinished)]
    if complete:
        _install_swap_files(storage, directory, complete)
    _remove(storage, directory, (SWAP,))
    _remove_orphans(storage, directory)


def _install_swap_files(storage: Storage, directory: Path, bases: list[int]) -> None:
    ends = [_end_of(storage, directory, base) for base in bases]
    logs = list_base_offsets(storage, directory, LOG)
    if None in ends and any(base >= bases[0] for base in logs):
        _log.error("%s: the %s files are damaged; the segments that they were to replace stay",
                   directory, SWAP)  # fmt: skip
        return
    first, end = bases[0], max((end for end in ends if end is not None), default=bases[-1] + 1)
    for base in logs:
        if first <= base < end:
            for kind in _KINDS:
                storage.remove(directory / file_name(base, kind))
    for base in bases:
        # the `.log` file last: until then the next start repeats all of this
        for kind in (*_KINDS[1:], LOG):
            source = directory / file_name(base, kind + SWAP)
            if storage.exists(source):
                storage.rename(source, directory / file_name(base, kind))
    _log.warning("%s: completed a compaction of offsets %d to %d", directory, first, end)


def _end_of(storage: Storage, directory: Path, base: int) -> int | None:
    """The offset after the last batch of a `.swap` file, None if it is damaged."""
    file = storage.open(directory / file_name(base, LOG + SWAP))
    try:
        position, end, size = 0, base, file.size()
        for batch in read_batches(file, 0, size):
            if batch.header.base_offset < end or not is_crc_valid(batch.data):
                return None
            position, end = batch.position + batch.header.size, batch.header.last_offset + 1
        return end if position == size else None
    finally:
        file.close()


def _remove(storage: Storage, directory: Path, suffixes: tuple[str, ...]) -> None:
    for name in storage.names(directory):
        if name.endswith(suffixes) and not storage.is_directory(directory / name):
            storage.remove(directory / name)


def _remove_orphans(storage: Storage, directory: Path) -> None:
    """Delete indexes without a `.log` file."""
    names = storage.names(directory)
    logs = {name.removesuffix(LOG) for name in names if name.endswith(LOG)}
    for name in names:
        match = _SEGMENT_FILE.fullmatch(name)
        if match and match[2] in _KINDS[1:] and not match[3] and match[1] not in logs:
            storage.remove(directory / name)
