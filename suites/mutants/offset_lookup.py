"""ListOffsets and OffsetForLeaderEpoch."""

from __future__ import annotations

import asyncio
from dataclasses import replace as changed
from typing import Any

from urteil.suites.mutants.declaration import mutant
from urteil.suites.mutants.patching import Function, Mark, replace
from urteil.suites.mutants.unsimulated import NOT_FOUND_BY_THREE

LATEST = -1
KEPT_S = 2.0
_EARLIEST = -2
NEWEST = -3
EARLIEST = -2


@mutant(
    about="ListOffsets answers the high watermark under read_committed",
    models="KAFKA-5522: ListOffsets ignored the last stable offset",
    scenario="transactions",
    guarantee="precommitted_read",
)
def list_offsets_ignores_lso(mark: Mark) -> None:
    """Uses the high watermark for every isolation level."""

    def make(original: Function) -> Function:
        def readable_end(partition: Any, isolation: int | None) -> Any:
            if isolation == 1:
                mark.hit()
                isolation = 0
            return original(partition, isolation)

        return readable_end

    replace("urteil.broker.replication.offset_lookup:_readable_end", make)


@mutant(
    about="ListOffsets reports a latest offset that is up to two seconds old",
    models="a latest offset that is reported before it is certain, as before KIP-207",
    scenario="indexes",
    guarantee="end_below_ack",
)
def stale_latest_offset(mark: Mark) -> None:
    """Answers ListOffsets from a cache of two seconds for each leader epoch."""
    known: dict[tuple[str, int, int], tuple[float, int]] = {}

    def make(original: Function) -> Function:
        async def find_offset(partition: Any, timestamp_ms: int, **kwargs: Any) -> Any:
            result = await original(partition, timestamp_ms, **kwargs)
            if timestamp_ms != LATEST or result.offset < 0:
                return result
            key = (partition.topic, partition.partition, partition.leader_epoch)
            now_s = asyncio.get_running_loop().time()
            at_s, offset = known.setdefault(key, (now_s, result.offset))
            if now_s - at_s > KEPT_S:
                known[key] = (now_s, result.offset)
                return result
            if offset < result.offset:
                mark.hit()
            return changed(result, offset=offset)

        return find_offset

    replace("urteil.broker.api.list_offsets:find_offset", make)


@mutant(
    about="ListOffsets by timestamp answers the record after the first matching one",
    models="an index entry used as the offset of the next record",
    scenario="indexes",
    guarantee="time_index_wrong",
)
def timestamp_lookup_too_late(mark: Mark) -> None:
    """Answers the next record's offset, where there is one."""

    def make(original: Function) -> Function:
        async def find_by_time(log: Any, timestamp: int, offload: Any) -> Any:
            result = await original(log, timestamp, offload)
            if timestamp < 0 or result is None or result.offset + 1 >= log.log_end_offset:
                return result
            mark.hit()
            return result._replace(offset=result.offset + 1)

        return find_by_time

    replace("urteil.broker.replication.offset_lookup:find_by_time", make)


@mutant(
    about="OffsetForLeaderEpoch answers an end offset that is one too high",
    models="an end offset treated as inclusive (KIP-101, KIP-320)",
    scenario="indexes",
    guarantee="epoch_lineage",
    mix="replication",
)
def epoch_end_off_by_one(mark: Mark) -> None:
    """Adds one to the end offset of each past epoch."""

    def make(original: Function) -> Function:
        def find_epoch_end(partition: Any, leader_epoch: int, current_leader_epoch: int) -> Any:
            error, epoch, end = original(partition, leader_epoch, current_leader_epoch)
            if 0 <= end < partition.log.log_end_offset:
                mark.hit()
                end += 1
            return error, epoch, end

        return find_epoch_end

    replace("urteil.broker.api.list_offsets:find_epoch_end", make)


@mutant(
    about="a leader reports the base offset of its active segment as the log start offset",
    models="a log start offset that is read from the wrong segment",
    scenario="indexes",
    guarantee="unseen",
    unsimulated=NOT_FOUND_BY_THREE,
)
def log_start_of_active_segment(mark: Mark) -> None:
    """Answers ListOffsets with the base offset of the active segment."""

    def make(original: Function) -> Function:
        async def find_offset(partition: Any, timestamp: int, **options: Any) -> Any:
            result = await original(partition, timestamp, **options)
            base = partition.log.segments.active_segment.base_offset
            if timestamp != _EARLIEST or options["isolation"] is None or base <= result.offset:
                return result
            mark.hit()
            return type(result)(offset=base, leader_epoch=result.leader_epoch)

        return find_offset

    replace("urteil.broker.api.list_offsets:find_offset", make)


@mutant(
    about="ListOffsets for the maximum timestamp answers the last record below the high watermark",
    models="KAFKA-16310: the offset of the maximum timestamp belongs to another record",
    scenario="indexes",
    guarantee="time_index_wrong",
)
def max_timestamp_of_last_record(mark: Mark) -> None:
    """Answers the lookup of the maximum timestamp with the last record."""

    def make(original: Function) -> Function:
        async def find_offset(partition: Any, timestamp: int, **kwargs: Any) -> Any:
            result = await original(partition, timestamp, **kwargs)
            if timestamp == NEWEST and result.offset >= 0:
                last = max(partition.log.high_watermark - 1, partition.log.log_start_offset)
                mark.hit()
                return type(result)(result.error, result.timestamp_ms, last, result.leader_epoch)
            return result

        return find_offset

    replace("urteil.broker.api.list_offsets:find_offset", make)


@mutant(
    about="ListOffsets by timestamp returns the leader's epoch instead of the record's",
    models="KIP-320: the leader epoch of a found record, read from the partition",
    scenario="indexes",
    guarantee="time_index_wrong",
)
def timestamp_lookup_in_leader_epoch(mark: Mark) -> None:
    """Answers a lookup by timestamp with the leader's current epoch."""

    def make(original: Function) -> Function:
        async def find_offset(partition: Any, timestamp: int, **kwargs: Any) -> Any:
            result = await original(partition, timestamp, **kwargs)
            if timestamp >= 0 and 0 <= result.leader_epoch < partition.leader_epoch:
                mark.hit()
                return changed(result, leader_epoch=partition.leader_epoch)
            return result

        return find_offset

    replace("urteil.broker.api.list_offsets:find_offset", make)


@mutant(
    about="a new leader reports its lagging high watermark as the latest offset",
    models="ListOffsets before KIP-207",
    scenario="epoch-truncation",
    guarantee="end_below_ack",
    unsimulated=NOT_FOUND_BY_THREE,
)
def latest_offset_too_early(mark: Mark) -> None:
    """Never answers OFFSET_NOT_AVAILABLE for the latest offset."""

    def make(original: Function) -> Function:
        async def find_offset(partition: Any, timestamp: int, **kwargs: Any) -> Any:
            kept = partition.epoch_start_offset
            if timestamp == LATEST and kept > partition.log.high_watermark:
                mark.hit()
                partition.epoch_start_offset = -1
            try:
                return await original(partition, timestamp, **kwargs)
            finally:
                partition.epoch_start_offset = kept

        return find_offset

    replace("urteil.broker.api.list_offsets:find_offset", make)


@mutant(
    about="the latest offset is never available, however long its leader leads",
    models="KIP-207: a high watermark that never counts as its epoch's own",
    scenario="group-calm",
    guarantee="no_delivery",
)
def latest_offset_never_available(mark: Mark) -> None:
    """Answers OFFSET_NOT_AVAILABLE for every latest offset."""
    from urteil.broker.wire.errors import ErrorCode

    def make(original: Function) -> Function:
        async def answer(broker: Any, version: int, request: Any, topic: str, lookup: Any) -> Any:
            from urteil.broker.api.list_offsets import _error_answer

            if lookup.timestamp == LATEST and not topic.startswith("__"):
                mark.hit()
                return _error_answer(lookup, ErrorCode.OFFSET_NOT_AVAILABLE)
            return await original(broker, version, request, topic, lookup)

        return answer

    replace("urteil.broker.api.list_offsets:_answer", make)


@mutant(
    about="a leader reports the log start offset that it reported first, whatever retention "
    "deleted since",
    models="a log start offset that is cached for ListOffsets and that retention does not update",
    scenario="retention",
    guarantee="wrong_log_start",
    mix="retention",
)
def log_start_cached(mark: Mark) -> None:
    """Answers ListOffsets with the first log start offset that was ever reported."""
    reported: dict[Any, int] = {}

    def make(original: Function) -> Function:
        async def find(partition: Any, timestamp: int, **kwargs: Any) -> Any:
            answer = await original(partition, timestamp, **kwargs)
            if timestamp != EARLIEST or answer.offset < 0:
                return answer
            first = reported.setdefault((partition.topic_id, partition.partition), answer.offset)
            if first != answer.offset:
                mark.hit()
            return changed(answer, offset=first)

        return find

    replace("urteil.broker.api.list_offsets:find_offset", make)
