"""A gap that a power cut left in a log: whole batches are missing between two segments.

A device that loses power may keep a newer segment and lose the end of the one before it. Recovery
keeps what lies behind the gap, as Apache Kafka does: this replica may be the only one. A follower
must not: its leader would never send it what is missing. So it drops what lies behind the gap, kept
aside under another name, and fetches all of it. A leader goes on with the gap. Until one of the two
happened, neither the recovery point nor a clean stop hides the gap from the next start.
"""

from __future__ import annotations

import logging

from urteil.broker.log.partition_log import PartitionLog
from urteil.broker.log.segment import LOG

_log = logging.getLogger("urteil.broker.log")


def drop_behind(log: PartitionLog) -> None:
    """The replica follows another one: its log ends before the gap, if it has one. Raises
    OSError."""
    offset, end = log.missing_from, log.log_end_offset
    if offset is None:
        return
    for segment in log.segments.take_after(log.segments.floor(offset)):
        target = log.kept.keep_segment(segment.file, segment.base_offset)
        if target is not None:
            _log.warning("%s: lies behind a gap, kept as %s", segment.path(LOG), target.name)
        log.snapshots.remove(segment.base_offset)
        segment.remove()
    log.truncate_to(offset)
    log.missing_from = None
    _log.warning(
        "%s: offset %d is missing, so the log ends there instead of at %d: the leader has the rest",
        log.directory, offset, end,
    )  # fmt: skip


def accept(log: PartitionLog) -> None:
    """The replica leads: what is missing is missing."""
    if log.missing_from is not None:
        _log.error("%s: leads without the records from offset %d on", log.directory,
                   log.missing_from)  # fmt: skip
        log.missing_from = None
