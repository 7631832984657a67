"""Moves a read from inside a batch to the next batch."""

from __future__ import annotations

import struct
from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a fetch from an offset inside a batch begins at the next batch"
MODELS = "a position that is looked up by first offsets only"
SCENARIO = "member-killed"
GUARANTEE = "commit_beyond_processed"
HEAD = struct.Struct(">q15xi")


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def read(
            segments: Any, offset: int, max_bytes: int, upto: int, log_end_offset: int, **more: Any
        ) -> Any:
            segment = segments[segments.floor_index(offset)] if offset < upto else None
            start = None if segment is None else segment.position_of(offset)
            if segment is not None and start is not None:
                base, last = HEAD.unpack_from(segment.file.read_at(HEAD.size, start))
                if base < offset:
                    mark.hit()
                    offset = base + last + 1
            return original(segments, offset, max_bytes, upto, log_end_offset, **more)

        return read

    replace("urteil.broker.log.partition_log:read_range", make)
