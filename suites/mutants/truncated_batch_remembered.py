"""A follower cuts its log and still knows the producers by what it cut."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "producers' last batches stay known when they are cut from a log: a retry counts as written"
MODELS = "producer state not rebuilt after truncation, KAFKA-5167"
SCENARIO = "returned-leader"
GUARANTEE = "no_progress"


def apply(mark: Mark) -> None:
    """What a truncation rebuilds is thrown away."""

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
