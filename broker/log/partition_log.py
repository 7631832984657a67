"""The log of one partition (Kafka's `UnifiedLog`): appends, reads, truncation, retention, flush.

A log is a list of segments, the last one active. Beside the segments it keeps state that follows
from their batches: leader epochs, producers, and the verifications of transactions. An append
changes all of it in one synchronous step:

1. `validate_append` checks the bytes without a look at the log, possibly on another thread.
2. `append_validated` checks producers and transactions and assigns offsets and the leader epoch.
3. `_write` rolls the segment if needed, writes the bytes and then adopts the new state.

Invariant: log_start_offset <= high_watermark <= log_end_offset, and offsets below recovery_point
are durable. Time is always an argument: no method reads a clock.
"""

from __future__ import annotations

import errno
import logging
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from urteil.broker.base.offload import Steps, run_steps
from urteil.broker.log import recovery, segment_retention, timestamp_search
from urteil.broker.log.append_validation import stamp_batch, validate_append
from urteil.broker.log.batch_checks import (
    Batches,
    RecordError,
    Rejection,
    split_fetched_batches,
)
from urteil.broker.log.batch_placement import PREFIX_BYTES, place_batches, split_by_segment
from urteil.broker.log.cleaner import segment_swap
from urteil.broker.log.directory_health import DirectoryHealth
from urteil.broker.log.file_names import INDEX, LOG, TIME_INDEX, TXN_INDEX
from urteil.broker.log.flush_job import FlushJob
from urteil.broker.log.log_config import LogConfig
from urteil.broker.log.log_directory import deleted_folder_name
from urteil.broker.log.log_results import AppendResult, ReadResult, TimestampOffset
from urteil.broker.log.producer_replay import rebuild_producers
from urteil.broker.log.producer_states import SentBatch, StagedBatches
from urteil.broker.log.range_read import read_range
from urteil.broker.log.recovery import CheckpointedState
from urteil.broker.log.segment import MAX_RELATIVE_OFFSET, DamagedSegment, LogSegment, PlacedBatch
from urteil.broker.log.storage import Buffer, FileRange, Storage
from urteil.broker.log.transaction_verification import TRUSTED, Guard, Verifications
from urteil.broker.log.txn_index import AbortedTxn
from urteil.broker.wire.errors import ErrorCode

__all__ = ["AppendResult", "PartitionLog", "ReadResult", "TimestampOffset"]

_log = logging.getLogger("urteil.broker.log")


class PartitionLog:
    """The batches of one partition in one folder.

    Results carry Kafka's errors as values. After a failed write, here or in another log of the same
    directory, the log rejects all appends (`failure` is the cause).
    """

    def __init__(
        self,
        storage: Storage,
        directory: Path,
        topic: str,
        partition: int,
        topic_id: uuid.UUID,
        config: LogConfig,
        now_ms: int,
        checkpointed: CheckpointedState | None = None,
        *,
        on_lowered: Callable[[], None] | None = None,
        health: DirectoryHealth | None = None,
    ) -> None:
        """Open the log in an existing folder and recover it as far as `checkpointed` requires.

        `on_lowered` is called after a truncation lowered the recovery point, the cleaned offset or
        the log start offset. The checkpoints must then be rewritten: larger offsets on disk would
        let recovery and the cleaner skip records that are written later.
        Raises OSError.
        """
        self.topic, self.partition, self.topic_id = topic, partition, topic_id
        self.directory = directory
        self.config = config
        self.health = health or DirectoryHealth(directory)
        self._storage = storage
        self._on_lowered = on_lowered
        loaded = recovery.load(
            storage, directory, config, checkpointed or CheckpointedState(), now_ms
        )
        self.segments = loaded.segments
        self.epochs = loaded.epochs
        self.producers = loaded.producers
        self.verifications = Verifications()
        self._snapshots = loaded.snapshots
        self.log_start_offset = loaded.log_start_offset
        self.log_end_offset = loaded.log_end_offset
        self.high_watermark = loaded.log_start_offset
        self.recovery_point = loaded.recovery_point
        self._kept = loaded.kept
        self.recovered_cut_bytes = loaded.cut_bytes
        self.cleaned_to = checkpointed.cleaned_to if checkpointed else None
        self.flushed_ms = now_ms
        self._generation = 0
        self._pending_removals: list[tuple[int, Path]] = []
        self._reported_damage: set[tuple[Path, int]] = set()

    def __repr__(self) -> str:
        return f"{self.topic}-{self.partition}[{self.log_start_offset}, {self.log_end_offset})"

    # State

    @property
    def failure(self) -> OSError | None:
        """The storage error after which the log rejects all writes, if there was one."""
        return self.health.failure

    @property
    def generation(self) -> int:
        """A number that changes with every truncation and rename: earlier reads may be outdated."""
        return self._generation

    @property
    def last_stable_offset(self) -> int:
        """The high watermark, or the first offset of an open transaction below it."""
        unstable = self.producers.first_unstable_offset
        if unstable is None or unstable > self.high_watermark:
            return self.high_watermark
        return max(unstable, self.log_start_offset)

    @property
    def latest_epoch(self) -> int:
        """The newest leader epoch in the log, -1 without one."""
        return self.epochs.latest

    @property
    def size(self) -> int:
        """Bytes of batches on disk."""
        return self.segments.size

    def update_high_watermark(self, offset: int) -> int:
        """Set the high watermark, clamped to the log's start and end offsets; return it."""
        self.high_watermark = min(max(offset, self.log_start_offset), self.log_end_offset)
        self.producers.on_high_watermark(self.high_watermark)
        return self.high_watermark

    # Appending

    def validate_append(
        self, data: memoryview, now_ms: int, *, from_client: bool = True
    ) -> Steps[Batches | Rejection]:
        """Check bytes before an append, without a look at the log; the result is for
        `append_validated`.

        `data` is not changed. It holds batches of magic 2, or messages of magic 0 and 1, which
        become one batch. An incomplete last batch is ignored. `from_client` adds the rules for
        producers: base offset 0, record counts, timestamps, keys in a compacted topic, consecutive
        sequences, no control records.
        """
        return validate_append(data, self.config, now_ms, from_client=from_client)

    def stamp(self, batches: Batches | Rejection, now_ms: int) -> Batches | Rejection:
        """Set the append time of checked batches to `now_ms`, for topics with LogAppendTime.

        A batch may wait after its check, and another one may be appended meanwhile.
        """
        if isinstance(batches, Rejection) or not self.config.log_append_time:
            return batches
        return [stamp_batch(header, batch, now_ms) for header, batch in batches]

    def append_as_leader(
        self,
        data: memoryview,
        leader_epoch: int,
        now_ms: int,
        *,
        from_client: bool = True,
        guard: Guard | None = TRUSTED,
    ) -> AppendResult:
        """Check batches (`validate_append`), assign offsets and the epoch, and write them."""
        if self.failure:
            return self._reject(ErrorCode.KAFKA_STORAGE_ERROR, str(self.failure))
        validated = run_steps(self.validate_append(data, now_ms, from_client=from_client))
        return self.append_validated(
            validated, leader_epoch, now_ms, from_client=from_client, guard=guard
        )

    def append_validated(
        self,
        batches: Batches | Rejection,
        leader_epoch: int,
        now_ms: int,
        *,
        from_client: bool = True,
        guard: Guard | None = TRUSTED,
    ) -> AppendResult:
        """Assign offsets and the epoch to checked batches, and write them.

        A batch that its producer already sent is not written again; the result has the offsets of
        the first append. The first batch of a transaction needs the `guard` of its verification.
        """
        if self.failure:
            return self._reject(ErrorCode.KAFKA_STORAGE_ERROR, str(self.failure))
        if isinstance(batches, Rejection):
            return self._reject(*batches)
        if not batches:
            return AppendResult(log_start_offset=self.log_start_offset)
        size = sum(header.size for header, _ in batches)
        if size > self.config.segment_bytes:
            return self._reject(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"{size} bytes exceed the segment size {self.config.segment_bytes}",
            )
        base_offset = offset = self.log_end_offset
        staged: StagedBatches | None = None
        for header, batch in batches:
            if header.producer_id >= 0:
                if from_client and (sent := self.producers.find_duplicate(header)):
                    return self._duplicate_result(sent)
                staged = staged or StagedBatches(self.producers, check_sequences=from_client)
                refusal = self.verifications.check(
                    header, staged, guard, base_offset
                ) or staged.add(header, offset, batch)
                if refusal:
                    return self._reject(*refusal)
            offset += header.last_offset_delta + 1
        buffers, placed = place_batches(batches, base_offset, leader_epoch)
        error = self._write(buffers, placed, [(leader_epoch, base_offset)], staged, now_ms)
        if error:
            return error
        return AppendResult(
            base_offset=base_offset,
            last_offset=offset - 1,
            log_append_time_ms=now_ms if self.config.log_append_time else -1,
            log_start_offset=self.log_start_offset,
        )

    def _duplicate_result(self, sent: SentBatch) -> AppendResult:
        return AppendResult(
            base_offset=sent.first_offset,
            last_offset=sent.last_offset,
            log_append_time_ms=sent.timestamp_ms,
            log_start_offset=self.log_start_offset,
            duplicate=True,
        )

    def append_as_follower(self, data: memoryview, now_ms: int) -> AppendResult:
        """Write batches byte for byte as the leader has them; an incomplete last one is ignored.

        Offsets are the leader's and may have gaps, as compaction leaves them. OFFSET_OUT_OF_RANGE
        for a batch that begins before the end of the log; then nothing is written.
        """
        if self.failure:
            return self._reject(ErrorCode.KAFKA_STORAGE_ERROR, str(self.failure))
        batches = split_fetched_batches(data)
        if isinstance(batches, Rejection):
            return self._reject(*batches)
        expected = self.log_end_offset
        for header, _ in batches:
            if header.base_offset < expected:
                return self._reject(
                    ErrorCode.OFFSET_OUT_OF_RANGE,
                    f"Batch at offset {header.base_offset}, but the next offset is {expected}",
                )
            expected = header.last_offset + 1
        for run in split_by_segment(
            batches, self.segments.active_segment.size, self.config.segment_bytes
        ):
            error = self._write_fetched(run, now_ms)
            if error:
                return error
        return AppendResult(
            base_offset=batches[0][0].base_offset if batches else -1,
            last_offset=batches[-1][0].last_offset if batches else -1,
            log_start_offset=self.log_start_offset,
        )

    def _write_fetched(self, batches: Batches, now_ms: int) -> AppendResult | None:
        staged: StagedBatches | None = None
        for header, batch in batches:
            if header.producer_id >= 0:
                staged = staged or StagedBatches(self.producers, check_sequences=False, trust=True)
                staged.add(header, header.base_offset, batch)
        placed = [(head.last_offset, head.max_timestamp, head.size) for head, _ in batches]
        epochs = [(head.partition_leader_epoch, head.base_offset) for head, _ in batches]
        return self._write([batch for _, batch in batches], placed, epochs, staged, now_ms)

    def _write(
        self,
        buffers: list[Buffer],
        placed: list[PlacedBatch],
        epochs: list[tuple[int, int]],
        staged: StagedBatches | None,
        now_ms: int,
    ) -> AppendResult | None:
        """Write batches and adopt the state that follows from them; an error result if the storage
        failed."""
        size = sum(item[2] for item in placed)
        try:
            self._roll_if_due(size, placed, epochs[0][1], now_ms)
            for epoch, start in epochs:
                self.epochs.assign(epoch, start)
            self.segments.active_segment.append(
                buffers, size, placed, self.config.index_interval_bytes
            )
            self.log_end_offset = placed[-1][0] + 1
            self._adopt(staged)
            if self.log_end_offset - self.recovery_point >= self.config.flush_messages:
                self.flush()
        except OSError as error:
            self.fail(error)
        if self.failure is None:
            return None
        return self._reject(ErrorCode.KAFKA_STORAGE_ERROR, str(self.failure))

    def _adopt(self, staged: StagedBatches | None) -> None:
        if staged is not None:
            for aborted in self.producers.merge(staged):
                self.segments.active_segment.txn_index.append(aborted)
            for producer_id in staged.verified:
                self.verifications.clear(producer_id)
        self.producers.end_offset = self.log_end_offset

    def _roll_if_due(
        self, size: int, placed: list[PlacedBatch], base_offset: int, now_ms: int
    ) -> None:
        newest_ms = max(item[1] for item in placed)
        active = self.segments.active_segment
        if active.should_roll(self.config, size, placed[-1][0], newest_ms, now_ms):
            # after a wide gap the new segment begins at the batch: to recovery a segment that ends
            # far below the next one's base would look as if it had lost records
            is_far = placed[-1][0] - self.log_end_offset > MAX_RELATIVE_OFFSET
            self.roll(now_ms, base_offset if is_far else None)

    def write_ahead(self, batches: Batches | Rejection, now_ms: int) -> Steps[None]:
        """Write a large batch behind the end of the log, piece by piece, before `append_validated`,
        which then writes its head alone.

        Readers and other appends see no change. The caller must call `drop_write_ahead` afterwards,
        whatever happens in between.
        """
        if isinstance(batches, Rejection) or self.failure or len(batches) != 1:
            return
        ((header, batch),) = batches
        if header.size > self.config.segment_bytes:
            return
        active, last_offset = (
            self.segments.active_segment,
            self.log_end_offset + header.last_offset_delta,
        )
        if active.should_roll(self.config, header.size, last_offset, header.max_timestamp, now_ms):
            self.roll(now_ms)
            active = self.segments.active_segment
        try:
            yield from active.write_ahead(batch[PREFIX_BYTES:], PREFIX_BYTES)
        except OSError as error:
            self.fail(error)

    def drop_write_ahead(self) -> None:
        """Cut off what `write_ahead` wrote and no append adopted."""
        try:
            self.segments.active_segment.drop_write_ahead()
        except OSError as error:
            self.fail(error)

    def _reject(
        self, error: ErrorCode, message: str, records: tuple[RecordError, ...] = ()
    ) -> AppendResult:
        return AppendResult(
            error=error,
            message=message,
            log_start_offset=self.log_start_offset,
            record_errors=records,
        )

    def roll(self, now_ms: int, base_offset: int | None = None) -> None:
        """Begin a new segment at the end of the log, or at the next batch's `base_offset`.

        An empty active segment stays, unless the next batch is out of reach of its relative
        offsets.
        """
        base_offset = max(self.log_end_offset, base_offset or 0)
        if self.segments.active_segment.size == 0:
            if base_offset - self.segments.active_segment.base_offset <= MAX_RELATIVE_OFFSET:
                return
            self.segments.remove_after(len(self.segments) - 2)
        else:
            self.segments.active_segment.seal()
        if base_offset > self.log_start_offset:
            self._snapshots.write(base_offset, self.producers.entries.values(), sync=False)
        self.segments.open(
            base_offset, now_ms, create=True, preallocated_bytes=self.config.preallocated_bytes
        )

    def write_snapshot(self, *, sync: bool) -> None:
        """Write the producer state as of the end of the log."""
        if self.log_end_offset > self.log_start_offset:
            self._snapshots.write(self.log_end_offset, self.producers.entries.values(), sync=sync)

    def fail(self, error: OSError) -> None:
        """Reject all writes from now on, here and in all logs of the same directory."""
        self.health.fail(error)

    def handle_read_error(self, error: OSError) -> None:
        """Fail the whole directory after an error of the device. A missing or short file concerns
        this log alone, and a lack of file descriptors may pass: both are only logged."""
        if error.errno in (None, errno.ENOENT, errno.EMFILE, errno.ENFILE):
            _log.error("%s: read failed: %s", self.directory, error)
        else:
            self.fail(error)

    # Reading

    def read(
        self, offset: int, max_bytes: int, *, upto: int, min_one: bool = True, lend: bool = False
    ) -> ReadResult:
        """Read batches from the one that holds `offset`, all below the offset `upto`.

        Returns at most `max_bytes`; the last batch may be incomplete. With `min_one` the first
        batch is complete even if it is larger; without it nothing is read if the first batch does
        not fit. With `lend` larger reads stay in the file (`FileRange`) and are sent from there.
        OFFSET_OUT_OF_RANGE outside [log_start_offset, log_end_offset]; CORRUPT_MESSAGE where the
        file is damaged: damage is never skipped.
        """
        if not self.log_start_offset <= offset <= self.log_end_offset:
            return ReadResult(ErrorCode.OFFSET_OUT_OF_RANGE, offset=offset)
        end = self.log_end_offset
        try:
            result = read_range(
                self.segments, offset, max_bytes, min(upto, end), end, min_one=min_one, lend=lend
            )
        except DamagedSegment as damage:
            self._log_damage(damage)
            return ReadResult(ErrorCode.CORRUPT_MESSAGE, offset=offset)
        for data in result.records:
            if isinstance(data, FileRange):
                data.on_failure = self.handle_read_error
        return result

    def _log_damage(self, damage: DamagedSegment) -> None:
        """Log a damaged place once: readers retry it again and again."""
        if (damage.path, damage.position) not in self._reported_damage:
            self._reported_damage.add((damage.path, damage.position))
            _log.error("%s: cannot be read from there on; stop the broker and remove the log's "
                       "folder if another replica has it, or restore the file", damage)  # fmt: skip

    def search_timestamp(self, timestamp_ms: int) -> Iterator[Steps[TimestampOffset | None]]:
        """Searches for the first record at or after a time, one search for each candidate batch;
        the first result that is not None is the answer.

        Raises DamagedSegment (OSError) when the batches before it cannot be read.
        """
        return timestamp_search.search_first_at_or_after(
            self.segments, timestamp_ms, self.log_start_offset
        )

    def search_max_timestamp(self) -> Iterator[Steps[TimestampOffset | None]]:
        """Searches for the first record with the largest timestamp."""
        return timestamp_search.search_newest(self.segments)

    def aborted_transactions(self, from_offset: int, to_offset: int) -> list[AbortedTxn]:
        """The aborted transactions that overlap [from_offset, to_offset)."""
        return self.segments.aborted_transactions(from_offset, to_offset)

    # Epochs

    def epoch_end_offset(self, requested_epoch: int) -> tuple[int, int]:
        """The largest epoch not above the requested one and its end, or (-1, -1) (KIP-279)."""
        return self.epochs.end_offset(requested_epoch, self.log_end_offset)

    def assign_epoch_start(self, epoch: int, offset: int) -> None:
        """Record that a leader epoch begins at `offset`, the end of the log."""
        self.epochs.assign(epoch, offset)

    # Truncating

    def truncate_to(self, offset: int) -> bool:
        """Remove `offset` and everything after it, with the whole batch that holds it.

        Returns False when the log already ended there.
        """
        if offset >= self.log_end_offset:
            self.epochs.truncate_from_end(self.log_end_offset)
            return False
        if offset < self.segments.first_offset:
            self.truncate_fully_and_start_at(offset)
            return True
        index = self.segments.floor_index(offset)
        for removed in self.segments.remove_after(index):
            self._snapshots.remove(removed)
        self.segments.active_segment.activate()
        end = self.segments.active_segment.truncate(offset)
        self._lower_end(min(end, offset))
        rebuild_producers(
            self.producers,
            self._snapshots,
            self.segments,
            log_start_offset=self.log_start_offset,
            end_offset=self.log_end_offset,
        )
        self.producers.on_high_watermark(self.high_watermark)
        return True

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Remove all records; the empty log begins at `offset`."""
        created_ms = self.segments.active_segment.created_ms
        self.segments.remove_after(-1)
        self.segments.open(
            offset, created_ms, create=True, preallocated_bytes=self.config.preallocated_bytes
        )
        self.epochs.clear()
        self._snapshots.remove_outside(offset, offset)
        self.producers.reset(offset)
        self._lower_end(offset)
        self.log_start_offset = self.high_watermark = offset

    def _lower_end(self, offset: int) -> None:
        """Adopt `offset` as the end of the log after a truncation."""
        self._generation += 1
        lowered = max(self.recovery_point, self.cleaned_to or 0, self.log_start_offset) > offset
        self.log_end_offset = offset
        self.log_start_offset = min(self.log_start_offset, offset)
        self.high_watermark = min(self.high_watermark, offset)
        self.epochs.truncate_from_end(offset)
        self.recovery_point = min(self.recovery_point, offset)
        if self.cleaned_to is not None:
            self.cleaned_to = min(self.cleaned_to, offset)
        if lowered:
            self.segments.active_segment.file.sync()  # else a power cut restores the bytes
            if self._on_lowered:
                self._on_lowered()

    def increment_log_start_offset(self, offset: int) -> ErrorCode:
        """Hide the records before `offset` from readers; retention removes their files later.

        OFFSET_OUT_OF_RANGE beyond the high watermark; an offset at or below the start changes
        nothing.
        """
        if offset > self.high_watermark:
            return ErrorCode.OFFSET_OUT_OF_RANGE
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            self.epochs.truncate_from_start(offset)
            self.producers.on_log_start(offset)
        return ErrorCode.NONE

    # Cleaning

    @property
    def storage(self) -> Storage:
        return self._storage

    def replace_segments(self, old: Sequence[LogSegment], now_ms: int) -> bool:
        """Replace consecutive segments by the complete `.cleaned` files with the same base offset.

        Returns False, without any change, unless `old` are consecutive segments before the active
        one. After a crash at any step the next start completes or undoes the replacement
        (`unfinished_files`). Raises OSError; the log has failed then.
        """
        index = self.segments.index_of(old)
        if index < 0 or index + len(old) >= len(self.segments) or self.failure is not None:
            return False
        due_ms = now_ms + self.config.file_delete_delay_ms
        try:
            segment_swap.commit(self._storage, self.directory, old[0].base_offset)
            for segment in old:
                self._pending_removals.extend((due_ms, path) for path in segment.rename_deleted())
            segment_swap.install(self._storage, self.directory, old[0].base_offset)
            for segment in old[1:]:
                self._snapshots.remove(segment.base_offset)
            self.segments.replace(index, len(old), now_ms)
        except OSError as error:
            self.fail(error)
            raise
        return True

    # Retention

    def apply_retention(self, now_ms: int) -> int:
        """Remove expired segments below the high watermark; returns how many.

        Their files are renamed now and removed by `remove_deleted` after file.delete.delay.ms.
        Expired kept files (`kept_files`) are removed at once.
        """
        for name in self._kept.remove_expired(
            self.config, self.size, self.log_start_offset, now_ms
        ):
            self._storage.remove(self.directory / name)
        count = segment_retention.count_deletable(self, now_ms)
        if count == 0:
            return 0
        if count == len(self.segments):
            self.roll(now_ms)
        due_ms = now_ms + self.config.file_delete_delay_ms
        for segment in self.segments.detach_first(count):
            paths = segment.rename_deleted() + self._snapshots.rename_deleted(segment.base_offset)
            self._pending_removals.extend((due_ms, path) for path in paths)
        start = max(self.log_start_offset, self.segments.first_offset)
        self.increment_log_start_offset(start)
        self._snapshots.remove_outside(self.log_start_offset, self.log_end_offset)
        return count

    def remove_deleted(self, now_ms: int) -> None:
        """Remove the files whose delay is over."""
        for due_ms, path in self._pending_removals:
            if due_ms <= now_ms:
                self._storage.remove(path)
        self._pending_removals = [item for item in self._pending_removals if item[0] > now_ms]

    def expire_producers(self, now_ms: int) -> None:
        """Forget producers that were idle for producer.id.expiration.ms."""
        self.producers.expire(now_ms, self.config.producer_id_expiration_ms)
        self.verifications.expire(now_ms, self.config.producer_id_expiration_ms)

    # Durability

    def flush(self, upto: int | None = None) -> None:
        """Make offsets below `upto` (default: all) durable and move the recovery point there."""
        job = self.create_flush_job(self.log_end_offset if upto is None else upto)
        job.run()
        self.finish_flush(job)

    @property
    def has_unflushed_segments(self) -> bool:
        """Whether a sealed segment is not durable yet; a background flush is due then."""
        return self.recovery_point < self.segments.active_segment.base_offset

    def create_flush_job(self, upto: int) -> FlushJob:
        """A job that syncs all files with offsets below `upto`; pass it to `finish_flush` after its
        run."""
        upto = min(upto, self.log_end_offset)
        files = [self.epochs.path]
        # includes the segment that ends at the recovery point: it may have been cut there
        first = max(self.segments.floor_index(self.recovery_point - 1), 0)
        for index in range(first, len(self.segments)):
            segment = self.segments[index]
            if segment.base_offset >= upto:
                break
            segment.flush_indexes()
            files += [segment.path(suffix) for suffix in (LOG, INDEX, TIME_INDEX, TXN_INDEX)]
            files.append(self._snapshots.path(segment.base_offset))
        return FlushJob(self._storage, self.health, self.directory, files, upto, self._generation)

    def finish_flush(self, job: FlushJob) -> None:
        """Raise the recovery point, unless the storage failed or the log was truncated since."""
        if self.failure is None and job.generation == self._generation:
            self.recovery_point = max(self.recovery_point, job.upto)

    def close(self, *, clean: bool = True) -> None:
        """Close all files. With `clean`, first make records, indexes and producer state durable.

        The files are closed even if the storage fails; `failure` is then the cause.
        """
        try:
            if clean and self.failure is None:
                self.write_snapshot(sync=True)
                self.segments.active_segment.seal()
                self.flush()
            if self.failure is None:
                for segment in self.segments:
                    segment.seal()
        except OSError as error:
            self.fail(error)
        self.close_files()

    def close_files(self) -> None:
        """Close the files without a flush."""
        for segment in self.segments:
            segment.file.close()

    def rename_for_delete(self) -> Path:
        """Close the log, rename its folder to `topic-partition.<id>-delete` and return it."""
        self.close(clean=False)
        self.rename_folder(
            deleted_folder_name(self.topic, self.partition, self._storage.unique_id())
        )
        return self.directory

    def rename_folder(self, name: str) -> None:
        """Rename the folder within its directory; the log stays open. Raises OSError."""
        target = self.directory.with_name(name)
        self._storage.rename(self.directory, target)
        self._generation += 1  # a running flush syncs files of the old name and must not count
        self._pending_removals = [
            (due_ms, target / path.name) for due_ms, path in self._pending_removals
        ]
        self.directory = target
        self.segments.relocate(target)
        self.epochs.relocate(target)
        self._snapshots.relocate(target)
