"""Discards the producer state that a truncation rebuilds."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "producer state survives a truncation: a retry counts as written"
MODELS = "KAFKA-5167: producer state not rebuilt after truncation"
SCENARIO = "returned-leader"
GUARANTEE = "no_progress"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def truncate(log: Any, offset: int) -> bool:
            known = {one: entry.copy() for one, entry in log.producers.entries.items()}
            was_cut: bool = original(log, offset)
            now = log.producers.entries
            if was_cut and any(
                one not in now or now[one].last_sequence != entry.last_sequence
                for one, entry in known.items()
            ):
                mark.hit()
                now.update(known)
            return was_cut

        return truncate

    replace("urteil.broker.log.partition_log:PartitionLog.truncate_to", make)
