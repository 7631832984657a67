"""Rejects logs whose offsets are not consecutive."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a log with a gap in its offsets counts as damaged and is not cleaned any more"
MODELS = "KAFKA-5413: the cleaner failed on offsets too far apart, and all logs grew"
SCENARIO = "compaction-calm"
GUARANTEE = "stale_value_visible"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def run(storage: Any, source: Any, position: int = 0) -> Iterator[Any]:
            expected: int | None = None
            for batch in original(storage, source, position):
                if expected is not None and batch.header.base_offset != expected:
                    mark.hit()
                    raise ValueError(f"{source.path}: offset {expected} is missing")
                expected = batch.header.last_offset + 1
                yield batch

        return run

    for module in ("map_pass", "rewrite_pass"):
        replace(f"urteil.broker.log.cleaner.{module}:read_intact_batches", make)
