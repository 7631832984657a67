"""Isolation of transactions: what readers of committed records receive of them, and when."""

from __future__ import annotations

import time
from dataclasses import replace as changed
from typing import Any

from urteil.suites.mutants.declaration import mutant
from urteil.suites.mutants.patching import Function, Mark, replace

KEPT_S = 0.4


@mutant(
    about="the last stable offset is that of the newest open transaction",
    models="the largest instead of the smallest first offset of the open transactions",
    scenario="list-append",
    guarantee="g1c",
    mix="transactions",
)
def newest_transaction_unstable(mark: Mark) -> None:
    """Takes the largest first offset of the transactions that are not stable."""

    def make(original: Any) -> Any:
        def first_unstable_offset(states: Any) -> int | None:
            first: int | None = original.fget(states)
            newest = max((*states._ongoing, *states._unreplicated), default=first)
            if newest != first:
                mark.hit()
            return newest

        return property(first_unstable_offset)

    replace("urteil.broker.log.producer_states:ProducerStates.first_unstable_offset", make)


@mutant(
    about="a Fetch answer lists aborted transactions from the fetch offset on",
    models="first offsets that are clamped to the fetch on the wrong side",
    scenario="list-append",
    guarantee="fractured_read",
    mix="transactions",
)
def aborts_from_fetch_offset(mark: Mark) -> None:
    """Lets aborted transactions begin at the fetch offset, so that a reader drops what their
    producers committed before."""

    def make(original: Function) -> Function:
        def widen(log: Any, from_offset: int, to_offset: int) -> list[Any]:
            entries = original(log, from_offset, to_offset)
            if any(entry.first_offset > from_offset for entry in entries):
                mark.hit()
            return [
                changed(entry, first_offset=min(entry.first_offset, from_offset))
                for entry in entries
            ]

        return widen

    replace("urteil.broker.log.partition_log:PartitionLog.aborted_transactions", make)


@mutant(
    about="ListOffsets reports a last stable offset that is up to 0.4 s old",
    models="an end for readers of committed records that is cached",
    scenario="list-append",
    guarantee="stale_end",
    mix="transactions",
)
def stable_end_cached(mark: Mark) -> None:
    """Answers ListOffsets under read_committed from a cache for each leader epoch."""
    known: dict[tuple[str, int, int], tuple[float, int]] = {}

    def make(original: Function) -> Function:
        def readable_end(partition: Any, isolation: int | None) -> Any:
            end = original(partition, isolation)
            if isolation != 1:
                return end
            key = (partition.topic, partition.partition, partition.leader_epoch)
            at_s, kept = known.get(key, (0.0, end))
            if time.monotonic() - at_s > KEPT_S:
                known[key] = (time.monotonic(), end)
                return end
            if kept != end:
                mark.hit()
            return kept

        return readable_end

    replace("urteil.broker.replication.offset_lookup:_readable_end", make)
