"""The log of one partition (Kafka's `UnifiedLog`): synchronous, told the time by its caller."""

from __future__ import annotations

import errno
import logging
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from urteil.broker.base.offload import Steps, finished
from urteil.broker.log import recovery, segment_retention, timestamp_search
from urteil.broker.log.append import HEAD_BYTES, Append
from urteil.broker.log.append_validation import admit
from urteil.broker.log.batch_checks import Batches, RecordError, Rejection, split_fetched
from urteil.broker.log.cleaner import segment_swap
from urteil.broker.log.directory_health import DirectoryHealth
from urteil.broker.log.flush_job import FlushJob
from urteil.broker.log.log_config import LogConfig
from urteil.broker.log.log_results import AppendResult, ReadResult, TimestampOffset
from urteil.broker.log.producer_replay import rebuild_producers
from urteil.broker.log.range_read import read
from urteil.broker.log.recovery import CheckpointedState
from urteil.broker.log.segment import (
    INDEX,
    LOG,
    MAX_RELATIVE_OFFSET,
    TIME_INDEX,
    TXN_INDEX,
    DamagedSegment,
    LogSegment,
)
from urteil.broker.log.storage import FileRange, Storage
from urteil.broker.log.transaction_verification import TRUSTED, Guard, Verifications
from urteil.broker.log.txn_index import AbortedTxn
from urteil.broker.wire.errors import ErrorCode

__all__ = ["AppendResult", "PartitionLog", "ReadResult", "TimestampOffset"]

_log = logging.getLogger("urteil.broker.log")


class PartitionLog:
    """Appends, reads and cuts one partition's batches.

    Kafka's errors are values in the results. When the storage fails under a write, here or in
    another log of the same `health`, the log is closed to appends for good (`failure` says why).
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
        remembered: CheckpointedState | None = None,
        *,
        on_cut: Callable[[], None] | None = None,
        health: DirectoryHealth | None = None,
    ) -> None:
        """Open the log in an existing folder, recovering it as `remembered` demands.

        `on_cut` is called when the recovery point, the end of what is clean or the log's start
        went back: checkpoints on disk beyond them would let recovery and cleaner skip what is
        written anew, or hide it.
        Raises OSError.
        """
        self.topic, self.partition, self.topic_id = topic, partition, topic_id
        self.directory = directory
        self.config = config
        self.health = health or DirectoryHealth(directory)
        self._storage = storage
        self._on_cut = on_cut
        loaded = recovery.load(
            storage, directory, config, remembered or CheckpointedState(), now_ms
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
        self.cleaned_to = remembered.cleaned_to if remembered else None
        self.flushed_ms = now_ms
        self._generation = 0
        self._deleted: list[tuple[int, Path]] = []
        self._complaints: set[tuple[Path, int]] = set()

    def __repr__(self) -> str:
        return f"{self.topic}-{self.partition}[{self.log_start_offset}, {self.log_end_offset})"

    # State

    @property
    def failure(self) -> OSError | None:
        """Why the log takes no writes, if it takes none."""
        return self.health.failure

    @property
    def generation(self) -> int:
        """Another number after every cut: what was read before may be there no more."""
        return self._generation

    @property
    def last_stable_offset(self) -> int:
        """The high watermark, or the first offset of an undecided transaction before it."""
        unstable = self.producers.first_unstable_offset
        if unstable is None or unstable > self.high_watermark:
            return self.high_watermark
        return max(unstable, self.log_start_offset)

    @property
    def latest_epoch(self) -> int:
        """The newest leader epoch in the log, -1 in a log without any."""
        return self.epochs.latest

    @property
    def size(self) -> int:
        """Bytes of batches on disk."""
        return self.segments.size

    def update_high_watermark(self, offset: int) -> int:
        """Set the high watermark, kept between start and end of the log; returns it."""
        self.high_watermark = min(max(offset, self.log_start_offset), self.log_end_offset)
        self.producers.on_high_watermark(self.high_watermark)
        return self.high_watermark

    # Appending

    def admission(
        self, data: memoryview, now_ms: int, *, from_client: bool = True
    ) -> Steps[Batches | Rejection]:
        """The checks of an append that need no look at the log, for `append_admitted`.

        `data` is not changed: batches of magic 2, or messages of magic 0 and 1, which become one;
        a cut one at its end is passed over, and nothing whole in it is nothing to do.
        `from_client` demands what only producers may be asked: base offset 0, counts, times,
        keys in a compacted topic, sequences that follow, no control records.
        """
        return admit(data, self.config, now_ms, from_client=from_client)

    def append_as_leader(
        self,
        data: memoryview,
        leader_epoch: int,
        now_ms: int,
        *,
        from_client: bool = True,
        guard: Guard | None = TRUSTED,
    ) -> AppendResult:
        """Check batches (`admission`), give them offsets and the epoch, write them."""
        if self.failure:
            return self._refused(ErrorCode.KAFKA_STORAGE_ERROR, str(self.failure))
        admitted = finished(self.admission(data, now_ms, from_client=from_client))
        return self.append_admitted(
            admitted, leader_epoch, now_ms, from_client=from_client, guard=guard
        )

    def append_admitted(
        self,
        parts: Batches | Rejection,
        leader_epoch: int,
        now_ms: int,
        *,
        from_client: bool = True,
        guard: Guard | None = TRUSTED,
    ) -> AppendResult:
        """Give batches offsets and the epoch, and write them. A batch that its producer sent before
        is answered as then, and not written. The first batch of a transaction needs the `guard` of
        its verification."""
        if self.failure:
            return self._refused(ErrorCode.KAFKA_STORAGE_ERROR, str(self.failure))
        if isinstance(parts, Rejection):
            return self._refused(*parts)
        if not parts:
            return AppendResult(log_start_offset=self.log_start_offset)
        size = sum(header.size for header, _ in parts)
        if size > self.config.segment_bytes:
            return self._refused(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"{size} bytes exceed the segment size {self.config.segment_bytes}",
            )
        return Append(self, now_ms).as_leader(
            parts, leader_epoch, from_client=from_client, guard=guard
        )

    def write_ahead(self, parts: Batches | Rejection, now_ms: int) -> Steps[None]:
        """Write a large batch behind the end of the log before `append_admitted`, which then finds
        it there: what would take long as a whole is done in steps. Nothing is changed that a reader
        or another append sees. `drop_ahead` must follow, whatever comes between."""
        if isinstance(parts, Rejection) or self.failure or len(parts) != 1:
            return
        ((header, batch),) = parts
        if header.size > self.config.segment_bytes:
            return
        active, last_offset = self.segments.active, self.log_end_offset + header.last_offset_delta
        if active.should_roll(self.config, header.size, last_offset, header.max_timestamp, now_ms):
            self.roll(now_ms)
            active = self.segments.active
        try:
            yield from active.write_ahead(batch[HEAD_BYTES:], HEAD_BYTES)
        except OSError as error:
            self.fail(error)

    def drop_ahead(self) -> None:
        """Forget what `write_ahead` wrote and no append took over."""
        try:
            self.segments.active.drop_ahead()
        except OSError as error:
            self.fail(error)

    def append_as_follower(self, data: memoryview, now_ms: int) -> AppendResult:
        """Write batches as the leader has them; a cut last one is passed over.

        OFFSET_OUT_OF_RANGE for a batch that begins before the end of the log.
        """
        if self.failure:
            return self._refused(ErrorCode.KAFKA_STORAGE_ERROR, str(self.failure))
        parts = split_fetched(data)
        if isinstance(parts, Rejection):
            return self._refused(*parts)
        return Append(self, now_ms).as_follower(parts)

    def _refused(
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

        An empty active segment stays as it is, unless the next batch lies too far from it.
        """
        base_offset = max(self.log_end_offset, base_offset or 0)
        if self.segments.active.size == 0:
            if base_offset - self.segments.active.base_offset <= MAX_RELATIVE_OFFSET:
                return
            self.segments.remove_after(len(self.segments) - 2)
        else:
            self.segments.active.seal()
        if base_offset > self.log_start_offset:
            self._snapshots.take(base_offset, self.producers.entries.values(), sync=False)
        self.segments.open(
            base_offset, now_ms, create=True, preallocated_bytes=self.config.preallocated_bytes
        )

    def take_snapshot(self, *, sync: bool) -> None:
        """Write the producers' state as of the end of the log."""
        if self.log_end_offset > self.log_start_offset:
            self._snapshots.take(self.log_end_offset, self.producers.entries.values(), sync=sync)

    def fail(self, error: OSError) -> None:
        """Refuse all writes from now on, here and in all logs of the same directory."""
        self.health.fail(error)

    def read_failed(self, error: OSError) -> None:
        """What the system says of the device goes for the whole directory; a file that somebody
        removed or cut is missing to this log alone, and of descriptors there may be more soon."""
        if error.errno in (None, errno.ENOENT, errno.EMFILE, errno.ENFILE):
            _log.error("%s: read failed: %s", self.directory, error)
        else:
            self.fail(error)

    # Reading

    def read(
        self, offset: int, max_bytes: int, *, upto: int, min_one: bool = True, lend: bool = False
    ) -> ReadResult:
        """Batches from the one that holds `offset`, none that reaches beyond offset `upto`.

        At most `max_bytes`, where the last batch may be cut; with `min_one` the first one is
        whole however large it is, without it nothing is read if it does not fit. With `lend`
        larger reads stay in the file (`FileRange`), to be sent from there.
        OFFSET_OUT_OF_RANGE outside of [log_start_offset, log_end_offset], CORRUPT_MESSAGE where
        the file is damaged: nothing is skipped.
        """
        if not self.log_start_offset <= offset <= self.log_end_offset:
            return ReadResult(ErrorCode.OFFSET_OUT_OF_RANGE, offset=offset)
        end = self.log_end_offset
        try:
            result = read(
                self.segments, offset, max_bytes, min(upto, end), end, min_one=min_one, lend=lend
            )
        except DamagedSegment as damage:
            self._complain(damage)
            return ReadResult(ErrorCode.CORRUPT_MESSAGE, offset=offset)
        for lent in result.records:
            if isinstance(lent, FileRange):
                lent.on_failure = self.read_failed
        return result

    def _complain(self, damage: DamagedSegment) -> None:
        """Once a place: readers ask again and again."""
        if (damage.path, damage.position) not in self._complaints:
            self._complaints.add((damage.path, damage.position))
            _log.error("%s: cannot be read from there on; stop the broker and remove the log's "
                       "folder if another replica has it, or restore the file", damage)  # fmt: skip

    def searches_for_timestamp(self, timestamp_ms: int) -> Iterator[Steps[TimestampOffset | None]]:
        """The search for the first record at or after a time, batch by batch: mostly of one.

        Raises DamagedSegment (OSError) when the way there is not readable.
        """
        return timestamp_search.first_at_or_after(
            self.segments, timestamp_ms, self.log_start_offset
        )

    def searches_for_max_timestamp(self) -> Iterator[Steps[TimestampOffset | None]]:
        """The search for the first record with the largest timestamp."""
        return timestamp_search.newest(self.segments)

    def aborted_transactions(self, from_offset: int, to_offset: int) -> list[AbortedTxn]:
        """Aborted transactions that a reader of [from_offset, to_offset) has to know of."""
        return self.segments.aborted(from_offset, to_offset)

    # Epochs

    def epoch_end_offset(self, requested_epoch: int) -> tuple[int, int]:
        """KIP-279: the largest epoch not above the requested one and its end; or (-1, -1)."""
        return self.epochs.end_offset(requested_epoch, self.log_end_offset)

    def assign_epoch_start(self, epoch: int, offset: int) -> None:
        """A leader's epoch begins, at the end of the log."""
        self.epochs.assign(epoch, offset)

    # Cutting

    def truncate_to(self, offset: int) -> bool:
        """Drop `offset` and all after it; a batch that holds it goes as a whole.

        Returns False when the log ended there already.
        """
        if offset >= self.log_end_offset:
            self.epochs.truncate_from_end(self.log_end_offset)
            return False
        if offset < self.segments.first_offset:
            self.truncate_fully_and_start_at(offset)
            return True
        index = self.segments.floor(offset)
        for removed in self.segments.remove_after(index):
            self._snapshots.remove(removed)
        self.segments.active.activate()
        end = self.segments.active.truncate(offset)
        self._ended_at(min(end, offset))
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
        """Drop everything; the empty log begins at `offset`."""
        created_ms = self.segments.active.created_ms
        self.segments.remove_after(-1)
        self.segments.open(
            offset, created_ms, create=True, preallocated_bytes=self.config.preallocated_bytes
        )
        self.epochs.clear()
        self._snapshots.remove_outside(offset, offset)
        self.producers.reset(offset)
        self._ended_at(offset)
        self.log_start_offset = self.high_watermark = offset

    def _ended_at(self, offset: int) -> None:
        """The log was cut, or begun anew, and ends at `offset`."""
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
            self.segments.active.file.sync()  # what was durable would be back after a power cut
            if self._on_cut:
                self._on_cut()

    def increment_log_start_offset(self, offset: int) -> ErrorCode:
        """DeleteRecords: what lies before `offset` is gone for readers, its files follow.

        OFFSET_OUT_OF_RANGE beyond the high watermark; a smaller offset changes nothing.
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
        """Put the whole `.cleaned` files that begin where `old` does in the place of its files.

        False, and nothing is done, if `old` are not segments in a row before the active one.
        A crash at any step is taken up by `leftovers`. Raises OSError; the log failed then.
        """
        index = self.segments.index_of(old)
        if index < 0 or index + len(old) >= len(self.segments) or self.failure is not None:
            return False
        due_ms = now_ms + self.config.file_delete_delay_ms
        try:
            segment_swap.announce(self._storage, self.directory, old[0].base_offset)
            for segment in old:
                self._deleted.extend((due_ms, path) for path in segment.rename_deleted())
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
        """Let go of old segments below the high watermark; returns how many.

        Their files are renamed now and removed by `remove_deleted` after file.delete.delay.ms. So
        old files go that recovery kept aside.
        """
        for name in self._kept.expired(self.config, self.size, self.log_start_offset, now_ms):
            self._storage.remove(self.directory / name)
        count = segment_retention.deletable(self, now_ms)
        if count == 0:
            return 0
        if count == len(self.segments):
            self.roll(now_ms)
        due_ms = now_ms + self.config.file_delete_delay_ms
        for segment in self.segments.take_first(count):
            paths = segment.rename_deleted() + self._snapshots.let_go(segment.base_offset)
            self._deleted.extend((due_ms, path) for path in paths)
        start = max(self.log_start_offset, self.segments.first_offset)
        self.increment_log_start_offset(start)
        self._snapshots.remove_outside(self.log_start_offset, self.log_end_offset)
        return count

    def remove_deleted(self, now_ms: int) -> None:
        """Remove files whose delay is over."""
        for due_ms, path in self._deleted:
            if due_ms <= now_ms:
                self._storage.remove(path)
        self._deleted = [item for item in self._deleted if item[0] > now_ms]

    def expire_producers(self, now_ms: int) -> None:
        """Forget producers that were idle for producer.id.expiration.ms."""
        self.producers.expire(now_ms, self.config.producer_id_expiration_ms)
        self.verifications.expire(now_ms, self.config.producer_id_expiration_ms)

    # Durability

    def flush(self, upto: int | None = None) -> None:
        """Make offsets below `upto` (default: all) durable and move the recovery point there."""
        job = self.flush_job(self.log_end_offset if upto is None else upto)
        job.run()
        self.finish_flush(job)

    @property
    def rolled_unflushed(self) -> bool:
        """Whether a sealed segment is not durable yet (Kafka flushes them in the background)."""
        return self.recovery_point < self.segments.active.base_offset

    def flush_job(self, upto: int) -> FlushJob:
        """What has to be synced for offsets below `upto`; pass it to `finish_flush` after."""
        upto = min(upto, self.log_end_offset)
        files = [self.epochs.path]
        # the segment that ends at the recovery point, too: it may have been cut there
        first = max(self.segments.floor(self.recovery_point - 1), 0)
        for index in range(first, len(self.segments)):
            segment = self.segments[index]
            if segment.base_offset >= upto:
                break
            segment.flush_indexes()
            files += [segment.path(suffix) for suffix in (LOG, INDEX, TIME_INDEX, TXN_INDEX)]
            files.append(self._snapshots.path(segment.base_offset))
        return FlushJob(self._storage, self.health, self.directory, files, upto, self._generation)

    def finish_flush(self, job: FlushJob) -> None:
        """Move the recovery point, if the storage did not fail and the log was not cut since."""
        if self.failure is None and job.generation == self._generation:
            self.recovery_point = max(self.recovery_point, job.upto)

    def close(self, *, clean: bool = True) -> None:
        """Close all files; `clean` first makes all durable, indexes and producers too.

        Where the storage fails the files are closed all the same, and `failure` says why.
        """
        try:
            if clean and self.failure is None:
                self.take_snapshot(sync=True)
                self.segments.active.seal()
                self.flush()
            if self.failure is None:
                for segment in self.segments:
                    segment.seal()
        except OSError as error:
            self.fail(error)
        self.close_files()

    def close_files(self) -> None:
        """Let go of the files as they are."""
        for segment in self.segments:
            segment.file.close()

    def rename_for_delete(self) -> Path:
        """Close the log and rename its folder to `topic-partition.<id>-delete`; returns it."""
        self.close(clean=False)
        self.rename_folder(self.doomed_name())
        return self.directory

    def doomed_name(self) -> str:
        """A name for the folder of a log that is to be deleted."""
        # the name of a folder ends at 255 characters (`LocalLog.logDeleteDirName`)
        suffix = f"-{self.partition}.{uuid.uuid4().hex}-delete"
        return self.topic[: 255 - len(suffix)] + suffix

    def rename_folder(self, name: str) -> None:
        """Go on in a folder of another name beside the old one. Raises OSError."""
        target = self.directory.with_name(name)
        self._storage.rename(self.directory, target)
        self._generation += 1  # a flush under way syncs files of the old name: it does not count
        self._deleted = [(due_ms, target / path.name) for due_ms, path in self._deleted]
        self.directory = target
        self.segments.relocate(target)
        self.epochs.relocate(target)
        self._snapshots.relocate(target)
