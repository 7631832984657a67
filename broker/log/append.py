"""Writing checked batches at the end of a log, with all that follows from them."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING

from urteil.broker.log.batch_checks import Batches
from urteil.broker.log.log_results import AppendResult
from urteil.broker.log.producer_states import SentBatch, StagedBatches
from urteil.broker.log.segment import MAX_RELATIVE_OFFSET, Appended
from urteil.broker.log.storage import Buffer
from urteil.broker.log.transaction_verification import Guard
from urteil.broker.wire.batches import BatchHeader
from urteil.broker.wire.errors import ErrorCode

if TYPE_CHECKING:
    from urteil.broker.log.partition_log import PartitionLog

_PREFIX = struct.Struct(">qii")


HEAD_BYTES = _PREFIX.size
"""Of a batch, before what the broker leaves as it is."""


class Append:
    """One append: offsets and producers first, then the bytes, then the log's new state."""

    __slots__ = ("_log", "_now_ms")

    def __init__(self, log: PartitionLog, now_ms: int) -> None:
        self._log = log
        self._now_ms = now_ms

    def as_leader(
        self, parts: Batches, leader_epoch: int, *, from_client: bool, guard: Guard | None
    ) -> AppendResult:
        """Offsets continue at the end of the log."""
        log = self._log
        base_offset = offset = log.log_end_offset
        staged: StagedBatches | None = None
        for header, batch in parts:
            if header.producer_id >= 0:
                if from_client and (sent := self._sent_before(header)):
                    return self._duplicate(sent)
                staged = staged or StagedBatches(log.producers, check_sequences=from_client)
                refusal = self._unverified(header, staged, guard) or staged.add(
                    header, offset, batch
                )
                if refusal:
                    return AppendResult(*refusal, log_start_offset=log.log_start_offset)
            offset += header.last_offset_delta + 1
        buffers, placed = self._place(parts, leader_epoch)
        error = self._write(buffers, placed, [(leader_epoch, base_offset)], staged)
        if error:
            return error
        return AppendResult(
            base_offset=base_offset,
            last_offset=offset - 1,
            log_append_time_ms=self._now_ms if log.config.log_append_time else -1,
            log_start_offset=log.log_start_offset,
        )

    def _unverified(
        self, header: BatchHeader, staged: StagedBatches, guard: Guard | None
    ) -> tuple[ErrorCode, str] | None:
        """Why a batch may not be appended: nobody says that its transaction is open, or one of its
        producer's that is being verified comes before it and is not here yet."""
        log, producer_id = self._log, header.producer_id
        if header.is_control or staged.is_open(producer_id):
            return None
        if header.is_transactional and not log.verifications.holds(producer_id, guard):
            return ErrorCode.INVALID_TXN_STATE, "Record was not part of an ongoing transaction"
        lowest = log.verifications.lowest_sequence(producer_id)
        if lowest is not None and header.base_sequence > lowest and not staged.is_stale(header):
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, (
                f"Out of order sequence number for producer {producer_id} at offset "
                f"{log.log_end_offset}: {header.base_sequence} (incoming seq. number), "
                f"{lowest} (earliest seen sequence)"
            )
        return None

    def _sent_before(self, header: BatchHeader) -> SentBatch | None:
        entry = self._log.producers.entries.get(header.producer_id)
        return entry.duplicate_of(header) if entry else None

    def _duplicate(self, sent: SentBatch) -> AppendResult:
        log = self._log
        return AppendResult(
            base_offset=sent.first_offset,
            last_offset=sent.last_offset,
            log_append_time_ms=sent.timestamp_ms,
            log_start_offset=log.log_start_offset,
            duplicate=True,
        )

    def _place(self, parts: Batches, leader_epoch: int) -> tuple[list[Buffer], list[Appended]]:
        """The batches as they go to the file, with their offsets and the epoch.

        The caller's buffer stays as it is. Offset and epoch lie before the part that the CRC
        covers, so that a prefix of 16 bytes in place of the old one does it.
        """
        offset = self._log.log_end_offset
        buffers: list[Buffer] = []
        placed: list[Appended] = []
        for header, batch in parts:
            buffers.append(_PREFIX.pack(offset, header.batch_length, leader_epoch))
            buffers.append(batch[HEAD_BYTES:])
            last_offset = offset + header.last_offset_delta
            placed.append((last_offset, header.max_timestamp, header.size))
            offset = last_offset + 1
        return buffers, placed

    def as_follower(self, parts: Batches) -> AppendResult:
        """Offsets are the leader's; gaps are its compaction's."""
        log = self._log
        expected = log.log_end_offset
        for header, _ in parts:
            if header.base_offset < expected:
                return AppendResult(
                    ErrorCode.OFFSET_OUT_OF_RANGE,
                    f"Offset {header.base_offset} comes where {expected} is the next",
                    log_start_offset=log.log_start_offset,
                )
            expected = header.last_offset + 1
        for run in self._runs(parts):
            error = self._write_run(run)
            if error:
                return error
        return AppendResult(
            base_offset=parts[0][0].base_offset if parts else -1,
            last_offset=parts[-1][0].last_offset if parts else -1,
            log_start_offset=log.log_start_offset,
        )

    def _runs(self, parts: Batches) -> Iterator[Batches]:
        """Runs of batches that fit one segment."""
        limit = self._log.config.segment_bytes
        room = limit - self._log.segments.active.size
        run: Batches = []
        for header, batch in parts:
            too_far = run and header.last_offset - run[0][0].base_offset > MAX_RELATIVE_OFFSET
            if run and (header.size > room or too_far):
                yield run
                run, room = [], limit
            run.append((header, batch))
            room -= header.size
        if run:
            yield run

    def _write_run(self, run: Batches) -> AppendResult | None:
        staged: StagedBatches | None = None
        for header, batch in run:
            if header.producer_id >= 0:
                staged = staged or StagedBatches(
                    self._log.producers, check_sequences=False, trust=True
                )
                staged.add(header, header.base_offset, batch)
        placed = [(head.last_offset, head.max_timestamp, head.size) for head, _ in run]
        epochs = [(head.partition_leader_epoch, head.base_offset) for head, _ in run]
        return self._write([batch for _, batch in run], placed, epochs, staged)

    def _write(
        self,
        buffers: list[Buffer],
        placed: list[Appended],
        epochs: list[tuple[int, int]],
        staged: StagedBatches | None,
    ) -> AppendResult | None:
        """Write and take over; an error result if the storage failed."""
        log = self._log
        size = sum(item[2] for item in placed)
        try:
            self._roll_if_due(size, placed, epochs[0][1])
            for epoch, start in epochs:
                log.epochs.assign(epoch, start)
            log.segments.active.append(buffers, size, placed, log.config.index_interval_bytes)
            log.log_end_offset = placed[-1][0] + 1
            self._take_over(staged)
            if log.log_end_offset - log.recovery_point >= log.config.flush_messages:
                log.flush()
        except OSError as error:
            log.fail(error)
        if log.failure is None:
            return None
        return AppendResult(
            ErrorCode.KAFKA_STORAGE_ERROR, str(log.failure), log_start_offset=log.log_start_offset
        )

    def _take_over(self, staged: StagedBatches | None) -> None:
        producers = self._log.producers
        if staged is not None:
            for aborted in producers.merge(staged):
                self._log.segments.active.txn_index.append(aborted)
            for producer_id in staged.verified:
                self._log.verifications.clear(producer_id)
        producers.end_offset = self._log.log_end_offset

    def _roll_if_due(self, size: int, placed: list[Appended], base_offset: int) -> None:
        log = self._log
        newest_ms = max(item[1] for item in placed)
        active = log.segments.active
        if active.should_roll(log.config, size, placed[-1][0], newest_ms, self._now_ms):
            # records that are missing before the batch would else look like lost ones (`recovery`)
            is_far = placed[-1][0] - log.log_end_offset > MAX_RELATIVE_OFFSET
            log.roll(self._now_ms, base_offset if is_far else None)
