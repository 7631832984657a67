"""Appends to one partition's log, its start, end and reads."""

from __future__ import annotations

import struct
from dataclasses import replace as changed
from typing import Any

from urteil.suites.mutants.declaration import mutant
from urteil.suites.mutants.patching import Function, Mark, replace

HEAD = struct.Struct(">q15xi")


@mutant(
    about="the last stable offset is one too high while a transaction is open",
    models="Redpanda #3036: a record at the last stable offset was readable",
    scenario="transactions",
    guarantee="aborted_read",
)
def lso_off_by_one(mark: Mark) -> None:
    """Adds one to the last stable offset, up to the high watermark."""

    def make(original: Any) -> Any:
        def last_stable_offset(log: Any) -> int:
            stable = int(original.fget(log))
            if stable == log.high_watermark:
                return stable
            mark.hit()
            return stable + 1

        return property(last_stable_offset)

    replace("urteil.broker.log.partition_log:PartitionLog.last_stable_offset", make)


@mutant(
    about="a fetch from before the log start offset is served while the segment is on disk",
    models="KIP-107: a read that checks the first segment instead of the log start offset",
    scenario="deletion",
    guarantee="undeleted_records",
    mix="retention",
)
def deleted_records_served(mark: Mark) -> None:
    """Checks reads against the base offset of the first segment."""

    def make(original: Function) -> Function:
        def read(log: Any, offset: int, max_bytes: int, **kwargs: Any) -> Any:
            start = log.log_start_offset
            if not log.segments.first_offset <= offset < start:
                return original(log, offset, max_bytes, **kwargs)
            mark.hit()
            log.log_start_offset = offset
            try:
                return original(log, offset, max_bytes, **kwargs)
            finally:
                log.log_start_offset = start

        return read

    replace("urteil.broker.log.partition_log:PartitionLog.read", make)


@mutant(
    about="producer state survives a truncation: a retry counts as written",
    models="KAFKA-5167: producer state not rebuilt after truncation",
    scenario="returned-leader",
    guarantee="no_progress",
)
def truncated_batch_remembered(mark: Mark) -> None:
    """Discards the producer state that a truncation rebuilds."""

    def make(original: Function) -> Function:
        def truncate(log: Any, offset: int) -> bool:
            known = {
                producer_id: entry.copy() for producer_id, entry in log.producers.entries.items()
            }
            was_cut: bool = original(log, offset)
            now = log.producers.entries
            if was_cut and any(
                producer_id not in now or now[producer_id].last_sequence != entry.last_sequence
                for producer_id, entry in known.items()
            ):
                mark.hit()
                now.update(known)
            return was_cut

        return truncate

    replace("urteil.broker.log.partition_log:PartitionLog.truncate_to", make)


@mutant(
    about="a Fetch answer omits aborted transactions that began before the fetch offset",
    models="a search of the transaction index by first offset",
    scenario="transactions-restart",
    guarantee="aborted_read",
)
def aborted_transactions_omitted(mark: Mark) -> None:
    """Removes aborted transactions that began before the fetch offset from the answer."""

    def make(original: Function) -> Function:
        def covered_only(log: Any, from_offset: int, to_offset: int) -> list[Any]:
            entries = original(log, from_offset, to_offset)
            reported = [entry for entry in entries if entry.first_offset >= from_offset]
            if len(reported) < len(entries):
                mark.hit()
            return reported

        return covered_only

    replace("urteil.broker.log.partition_log:PartitionLog.aborted_transactions", make)


@mutant(
    about="a fetch from an offset inside a batch begins at the next batch",
    models="a position that is looked up by first offsets only",
    scenario="member-killed",
    guarantee="commit_beyond_processed",
    mix="replication",
)
def rest_of_batch_skipped(mark: Mark) -> None:
    """Moves a read from inside a batch to the next batch."""

    def make(original: Function) -> Function:
        def read(
            segments: Any,
            offset: int,
            max_bytes: int,
            upto: int,
            log_end_offset: int,
            **kwargs: Any,
        ) -> Any:
            segment = segments[segments.floor_index(offset)] if offset < upto else None
            start = None if segment is None else segment.position_of(offset)
            if segment is not None and start is not None:
                base, last = HEAD.unpack_from(segment.file.read_at(HEAD.size, start))
                if base < offset:
                    mark.hit()
                    offset = base + last + 1
            return original(segments, offset, max_bytes, upto, log_end_offset, **kwargs)

        return read

    replace("urteil.broker.log.partition_log:read_range", make)


@mutant(
    about="a log whose old segments are deleted forgets all producers",
    models="KAFKA-7190: producer state removed when retention deletes its records",
    scenario="retention-changed",
    guarantee="duplicate",
    unsimulated="no producer is idle while segments expire",
)
def producers_deleted_with_segments(mark: Mark) -> None:
    """Clears the producer state when old segments are deleted."""

    def make(original: Function) -> Function:
        def retain(log: Any, now_ms: int) -> Any:
            count = original(log, now_ms)
            if count and log.producers.entries:
                mark.hit()
                log.producers.entries.clear()
            return count

        return retain

    replace("urteil.broker.log.partition_log:PartitionLog.apply_retention", make)


@mutant(
    about="files of deleted segments are renamed and never removed",
    models="a scheduled removal that is forgotten",
    scenario="retention",
    guarantee="leftover_log",
    mix="retention",
)
def segments_not_removed(mark: Mark) -> None:
    """Removes nothing from the list of due files."""

    def make(original: Function) -> Function:
        def remove_deleted(log: Any, now_ms: int) -> None:
            if log._pending_removals:
                mark.hit()

        return remove_deleted

    replace("urteil.broker.log.partition_log:PartitionLog.remove_deleted", make)


@mutant(
    about="a broker forgets producers one second after their last batch",
    models="producer.id.expiration.ms in the wrong unit",
    scenario="repeated-batches",
    guarantee="duplicate",
)
def producers_expire_early(mark: Mark) -> None:
    """Expires producers one second after their last batch."""

    def make(original: Function) -> Function:
        def append_validated(
            log: Any, batches: Any, leader_epoch: int, now_ms: int, **options: Any
        ) -> Any:
            entries = log.producers.entries
            sent = batches if isinstance(batches, list) and options.get("from_client") else []
            for header, _ in sent:
                known = entries.get(header.producer_id)
                if known is not None and now_ms - known.last_timestamp_ms > 1_000:
                    mark.hit()
                    del entries[header.producer_id]
            return original(log, batches, leader_epoch, now_ms, **options)

        return append_validated

    replace("urteil.broker.log.partition_log:PartitionLog.append_validated", make)


@mutant(
    about="the answer to a duplicate batch waits for ever, and its producer sends it again",
    models="a second request that waits for the same records and is never woken",
    scenario="protocol-produce",
    guarantee="stalled_producer",
)
def duplicate_unanswered(mark: Mark) -> None:
    """Lets the answer to a duplicate wait for an offset that the log does not reach."""

    def make(original: Function) -> Function:
        def duplicate_result(log: Any, sent: Any) -> Any:
            mark.hit()
            return changed(original(log, sent), last_offset=2**62)

        return duplicate_result

    replace("urteil.broker.log.partition_log:PartitionLog._duplicate_result", make)


@mutant(
    about="a duplicate batch is acknowledged without its offset, though the broker has it",
    models="KAFKA-5494: duplicates answered with offset -1",
    scenario="known-answers",
    guarantee="wrong_answer",
)
def duplicate_without_offset(mark: Mark) -> None:
    """Answers a duplicate with offset -1."""

    def make(original: Function) -> Function:
        def duplicate_result(log: Any, sent: Any) -> Any:
            mark.hit()
            return changed(original(log, sent), base_offset=-1)

        return duplicate_result

    replace("urteil.broker.log.partition_log:PartitionLog._duplicate_result", make)
