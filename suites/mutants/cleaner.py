"""Log compaction."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from urteil.suites.mutants.declaration import mutant
from urteil.suites.mutants.patching import Function, Mark, replace


@mutant(
    about="the cleaner drops the newest value of a key that was written more than once",
    models="an offset map that confuses a record with the next one",
    scenario="compaction-calm",
    guarantee="latest_value_lost",
)
def cleaner_drops_latest(mark: Mark) -> None:
    """Stores an offset that is one too high for a key that the map already has."""

    def make(original: Function) -> Function:
        def run(offsets: Any, keys: Any) -> None:
            again = [(key, offset + 1) for key, offset in keys if key in offsets.offsets]
            original(offsets, keys)
            if again:
                mark.hit()
                original(offsets, again)

        return run

    replace("urteil.broker.log.cleaner.offset_map:OffsetMap.put", make)


@mutant(
    about="the first cleaning drops tombstones, without waiting for delete.retention.ms",
    models="a cleaner from before KIP-534 whose horizon has always passed",
    scenario="compaction-calm",
    guarantee="tombstone_too_early",
)
def cleaner_drops_tombstone_at_once(mark: Mark) -> None:
    """Reports the delete horizon of every batch as passed."""

    def make(_: Function) -> Function:
        def run(*_: Any) -> bool:
            mark.hit()
            return True

        return run

    replace("urteil.broker.log.cleaner.record_retention:RecordRetention._is_past_horizon", make)


@mutant(
    about="the active segment is rolled and cleaned, whatever min.compaction.lag.ms says",
    models="a cleaner that counts the active segment as dirty",
    scenario="compaction-calm",
    guarantee="compacted_too_early",
    unsimulated="what is active is judged when nothing is written any more",
)
def cleaner_cleans_active_segment(mark: Mark) -> None:
    """Counts every committed record as cleanable, after rolling the active segment."""

    def make(_: Function) -> Function:
        def run(log: Any, first_dirty: int, dirty: Any, now_ms: int) -> int:
            if log.segments.active_segment.size and log.last_stable_offset == log.log_end_offset:
                mark.hit()
                log.roll(now_ms)
            return int(max(first_dirty, log.segments.active_segment.base_offset))

        return run

    replace("urteil.broker.log.cleaner.candidates:_end", make)


@mutant(
    about="the records that remain in a cleaned batch get new, consecutive offsets",
    models="recompression that assigns new offsets",
    scenario="compaction-calm",
    guarantee="offset_renumbered",
)
def cleaner_renumbers(mark: Mark) -> None:
    """Rebuilds shortened batches with consecutive offsets."""

    def make(original: Function) -> Function:
        def run(header: Any, *arguments: Any) -> bytes:
            from urteil.broker.wire.batches import build_batch, iter_records

            mark.hit()
            kept = list(iter_records(original(header, *arguments)))
            return build_batch(
                [
                    (record.key, record.value, record.headers, record.timestamp_ms)
                    for record in kept
                ],
                base_offset=header.base_offset,
                leader_epoch=header.partition_leader_epoch,
                producer_id=header.producer_id,
                producer_epoch=header.producer_epoch,
                base_sequence=header.base_sequence,
                compression=header.compression,
                transactional=header.is_transactional,
            )

        return run

    replace("urteil.broker.log.cleaner.record_retention:rebuild_batch", make)


@mutant(
    about="a log with a gap in its offsets counts as damaged and is not cleaned any more",
    models="KAFKA-5413: the cleaner failed on offsets too far apart, and all logs grew",
    scenario="compaction-calm",
    guarantee="stale_value_visible",
    unsimulated="no check judges how long the cleaner takes",
)
def offset_gap_breaks_cleaner(mark: Mark) -> None:
    """Rejects logs whose offsets are not consecutive."""

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


@mutant(
    about="records of aborted transactions supersede committed ones when their log is cleaned",
    models="a cleaner that ignores the transaction index",
    scenario="transactions-cleaned",
    guarantee="latest_value_lost",
    mix="compacted-transactions",
)
def cleaner_counts_aborted(mark: Mark) -> None:
    """Hides aborted transactions from the cleaner, except for their markers."""

    def make(original: Function) -> Function:
        def discards(walk: Any, header: Any, data: Any) -> bool:
            result = bool(original(walk, header, data))
            if not result or header.is_control:
                return result
            mark.hit()
            return False

        return discards

    replace("urteil.broker.log.cleaner.transaction_tracker:TransactionTracker.is_discarded", make)


@mutant(
    about="the cleaner processes records above the last stable offset",
    models="KIP-98: cleaning not bounded by the first unstable offset",
    scenario="transactions-held-open",
    guarantee="latest_value_lost",
    mix="compacted-transactions",
)
def open_transactions_cleaned(mark: Mark) -> None:
    """Counts every closed segment as cleanable."""

    def make(original: Function) -> Function:
        def end(log: Any, first_dirty: int, dirty: Any, now_ms: int) -> int:
            result: int = original(log, first_dirty, dirty, now_ms)
            active: int = log.segments.active_segment.base_offset
            if log.last_stable_offset >= active or log.config.min_compaction_lag_ms > 0:
                return result
            mark.hit()
            return active

        return end

    replace("urteil.broker.log.cleaner.candidates:_end", make)


@mutant(
    about="a compressed batch that the cleaner shortens loses one record too many",
    models="a cleaner that rebuilds compressed batches incorrectly",
    scenario="compaction",
    guarantee="latest_value_lost",
    unsimulated="no producer compresses",
)
def cleaner_loses_of_compressed(mark: Mark) -> None:
    """Drops the last retained record of a compressed batch."""

    def make(original: Function) -> Function:
        def write(retention: Any, header: Any, data: Any, kept: Any, *, without_txn: bool) -> Any:
            body, scanned, numbers = kept
            if header.compression and 1 < len(numbers) < header.records_count:
                mark.hit()
                kept = body, scanned, numbers[:-1]
            return original(retention, header, data, kept, without_txn=without_txn)

        return write

    replace("urteil.broker.log.cleaner.record_retention:RecordRetention._rewrite", make)


@mutant(
    about="retention skips topics with cleanup.policy=compact,delete",
    models="cleanup.policy=compact,delete treated as compact",
    scenario="retention",
    guarantee="kept_too_long",
    unsimulated="no topic is compacted and has limits",
)
def compact_delete_never_deletes(mark: Mark) -> None:
    """Skips logs with a compact policy in the retention task."""

    def make(original: Function) -> Function:
        def apply_retention(cleaner: Any, now_ms: int) -> None:
            if any(log.config.deletes for log in cleaner._list_cleanable()):
                mark.hit()

        return apply_retention

    replace("urteil.broker.log.cleaner.cleaner:Cleaner._apply_retention", make)


@mutant(
    about="the cleaner ends when it reads its own output a second time",
    models="KAFKA-5431: cleaned segments that are preallocated have zeros behind their records",
    scenario="compaction-calm",
    guarantee="kept_too_long",
    mix="compaction",
)
def cleaner_ends_at_second_cleaning(mark: Mark) -> None:
    """Disables the cleaner when a log is due that was cleaned before."""

    def make(original: Function) -> Function:
        def choose(cleaner: Any, now_ms: int) -> Any:
            chosen = original(cleaner, now_ms)
            if chosen is None or not chosen.clean_bytes:
                return chosen
            mark.hit()
            cleaner.settings = dataclasses.replace(cleaner.settings, enabled=False)
            return None

        return choose

    replace("urteil.broker.log.cleaner.cleaner:Cleaner._choose", make)


@mutant(
    about="the cleaner keeps tombstones for ever",
    models="KAFKA-8522: tombstones that survive because the delete horizon moves",
    scenario="tombstones",
    guarantee="stale_value_visible",
    unsimulated="tombstones are kept for a day there",
)
def tombstones_not_removed(mark: Mark) -> None:
    """Reports no delete horizon as passed."""

    def make(original: Function) -> Function:
        def is_over(*args: Any) -> bool:
            if original(*args):
                mark.hit()
            return False

        return is_over

    replace("urteil.broker.log.cleaner.record_retention:RecordRetention._is_past_horizon", make)


@mutant(
    about="the cleaner drops markers at once, whether or not their records remain",
    models="KIP-534: control batches without a delete horizon",
    scenario="transactions-cleaned",
    guarantee="hanging_txn",
    mix="compacted-transactions",
)
def markers_cleaned_at_once(mark: Mark) -> None:
    """Retains no control batch in a cleaning."""

    def make(original: Function) -> Function:
        def of(retention: Any, header: Any, data: Any) -> Any:
            kept = original(retention, header, data)
            if kept is not None and header.is_control and header.next_offset != retention.round_end:
                mark.hit()
                return None
            return kept

        return of

    replace("urteil.broker.log.cleaner.record_retention:RecordRetention.filter_batch", make)


@mutant(
    about="the cleaner drops the last batch of each producer: new replicas lack the "
    "producers' state",
    models="KIP-98: a cleaner that drops the empty last batches of producers",
    scenario="known-answers",
    guarantee="wrong_answer",
)
def cleaner_drops_producer_state(mark: Mark) -> None:
    """Drops the empty last batches that keep a producer's state."""

    def make(original: Function) -> Function:
        def is_needed(retention: Any, header: Any) -> bool:
            if not original(retention, header) or header.next_offset == retention.round_end:
                return bool(header.next_offset == retention.round_end)
            mark.hit()
            return False

        return is_needed

    replace("urteil.broker.log.cleaner.record_retention:RecordRetention._must_stay", make)


@mutant(
    about="a batch that the cleaner shortens loses its producer id, epoch and sequence",
    models="a cleaner that rewrites batch headers",
    scenario="compaction",
    guarantee="sequence_gap",
    mix="compaction",
)
def cleaner_drops_producer_id(mark: Mark) -> None:
    """Rewrites shortened batches as those of a producer without idempotence."""

    def make(original: Function) -> Function:
        def rebuild_batch(header: Any, *args: Any, **kwargs: Any) -> Any:
            if header.producer_id < 0 or header.is_transactional or header.is_control:
                return original(header, *args, **kwargs)
            mark.hit()
            without_producer = header._replace(producer_id=-1, producer_epoch=-1, base_sequence=-1)
            return original(without_producer, *args, **kwargs)

        return rebuild_batch

    replace("urteil.broker.log.cleaner.record_retention:rebuild_batch", make)
