"""Writes empty snapshots at a roll."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "the producer snapshot at a segment roll is empty"
MODELS = "producer state that is lost when a log rolls"
SCENARIO = "restart-storm"
GUARANTEE = "duplicate"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def write(snapshots: Any, offset: int, entries: Any, *, sync: bool) -> None:
            if not sync:
                mark.hit()
                entries = ()
            original(snapshots, offset, entries, sync=sync)

        return write

    replace("urteil.broker.log.producer_snapshots:ProducerSnapshots.write", make)
