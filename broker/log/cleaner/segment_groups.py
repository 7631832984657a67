"""Groups of segments that a cleaning merges into one (`Cleaner.groupSegmentsBySize`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from urteil.broker.log.file_names import LOG
from urteil.broker.log.log_config import LogConfig
from urteil.broker.log.segment import MAX_RELATIVE_OFFSET, LogSegment


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """An immutable description of a segment for the background thread."""

    segment: LogSegment
    path: Path
    base_offset: int
    end_offset: int
    """The base offset of the next segment."""
    size: int
    index_bytes: int
    time_index_bytes: int
    modified_ms: int


def describe_source(segment: LogSegment) -> Source:
    return Source(
        segment=segment,
        path=segment.path(LOG),
        base_offset=segment.base_offset,
        end_offset=segment.bound,
        size=segment.size,
        index_bytes=segment.offset_index.count * segment.offset_index.ENTRY,
        time_index_bytes=segment.time_index.count * segment.time_index.ENTRY,
        modified_ms=segment.file.modified_ms(),
    )


def group_sources(sources: Sequence[Source], config: LogConfig) -> list[list[Source]]:
    """Group neighbours whose bytes, indexes and offsets fit one segment."""
    groups: list[list[Source]] = []
    room = index_room = time_index_room = 0
    for source in sources:
        fits = (
            bool(groups)
            and source.size <= room
            and source.index_bytes <= index_room
            and source.time_index_bytes <= time_index_room
            and _is_in_reach(groups[-1][0], source)
        )
        if not fits:
            groups.append([])
            room = config.segment_bytes
            index_room = time_index_room = config.segment_index_bytes
        groups[-1].append(source)
        room -= source.size
        index_room -= source.index_bytes
        time_index_room -= source.time_index_bytes
    return groups


def _is_in_reach(first: Source, source: Source) -> bool:
    # an empty segment has no offsets
    return source.size == 0 or source.end_offset - 1 - first.base_offset <= MAX_RELATIVE_OFFSET
