"""Logs that other releases wrote, as their leader or another replica serves them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tests.broker.log.old_folders import OldLog, Row
from tests.conformance.fetching import fetch, fetch_request
from tests.conformance.side import Side
from urteil.broker.wire.batches import (
    Compression,
    CorruptBatch,
    is_crc_valid,
    iter_stored,
    iter_stored_records,
)
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import ListOffsetsRequest

EARLIEST, LATEST = -2, -1


class OldLogReader:
    """Reads the partitions of one topic; `to` is the broker that serves them."""

    def __init__(self, side: Side, topic: str, to: int = 1) -> None:
        self.side, self.topic, self.to = side, topic, to

    def rows(self, number: int, log: OldLog, leader: OldLogReader | None = None) -> list[Row]:
        """As a reader gets them that steps over what it cannot read to the next known offset; from
        a follower with its `leader`, which knows the log's ends."""
        rows: list[Row] = []
        offset, end = ((leader or self).offset(number, of)[0] for of in (EARLIEST, LATEST))
        while offset < end:
            partition = {"partition": number, "fetch_offset": offset}
            answer = self.side.get(fetch_request(self.topic, [partition]), 11, to=self.to)
            part = answer.responses[0].partitions[0]
            after = offset
            for data in _valid_batches(memoryview(part.records or b"")):
                read = [Row(*stored_record[:4]) for stored_record in iter_stored_records(data)]
                rows += [row for row in read if row.offset >= after]
                after = max(read[-1].offset + 1, after)
            if after == offset:
                after = next((row.offset for row in log.rows if row.offset > offset), end)
            offset = after
        return rows

    def offset(self, number: int, timestamp: int) -> tuple[int, int]:
        kind = ListOffsetsRequest.ListOffsetsPartition
        partition = kind(partition_index=number, timestamp=timestamp)
        request = ListOffsetsRequest(
            replica_id=-1,
            topics=[ListOffsetsRequest.ListOffsetsTopic(name=self.topic, partitions=[partition])],
        )
        part = self.side.get(request, 2, to=self.to).topics[0].partitions[0]
        assert part.error_code == ErrorCode.NONE, part
        return part.offset, part.timestamp

    def offsets_and_messages(self, number: int, log: OldLog) -> dict[str, Any]:
        """Offsets by time, and what old readers get."""
        times = sorted({row.time_ms for row in log.rows if row.time_ms >= 0})
        picked = [*times[:: max(len(times) // 4, 1)], (times or [0])[-1] + 1]
        start = self.offset(number, EARLIEST)[0]
        return {
            "ends": [self.offset(number, time_ms) for time_ms in (EARLIEST, LATEST)],
            "times": [self.offset(number, time_ms) for time_ms in picked],
            "old readers": [
                (version, offset, *_records(self._fetched(number, version, offset)))
                for version in (0, 3)
                for offset in (start, log.rows[len(log.rows) // 2].offset)
            ],
        }

    def _fetched(self, number: int, version: int, offset: int) -> Any:
        partition = {"partition": number, "fetch_offset": offset}
        answer = fetch(self.side, version, self.topic, [partition], to=self.to)
        return answer["responses"][0]["partitions"][0]


def _valid_batches(data: memoryview) -> Iterator[memoryview]:
    """The batches before the first one that a reader cannot take."""
    try:
        for _, batch in iter_stored(data, allow_partial_tail=True):
            if not is_crc_valid(batch):
                return
            yield batch
    except CorruptBatch:
        return


def _records(part: Any) -> tuple[Any, ...]:
    return part["error_code"], *part["records"]


def differences(
    ours: OldLogReader, theirs: OldLogReader, number: int, log: OldLog
) -> Iterator[str]:
    """Yield the differences for old readers and for lookups by time."""
    results = ours.offsets_and_messages(number, log), theirs.offsets_and_messages(number, log)
    for name in results[0]:
        for our, their in zip(results[0][name], results[1][name], strict=True):
            if our != their and not _may_differ(log, name, our, their):
                yield f"{name}: ours {our}, Apache Kafka's {their}"


def _may_differ(log: OldLog, name: str, ours: Sequence[Any], theirs: Sequence[Any]) -> bool:
    """Apache Kafka looks for a time in the first segment alone whose file's time is late enough;
    and where zstd follows, which old readers do not know, it ends an answer earlier than there."""
    if name == "times":
        return theirs == (-1, -1)
    has_zstd = any(
        batch.magic == 2 and batch.data[22] & 7 == Compression.ZSTD for batch in log.batches
    )
    beginning = theirs[:-1]
    return name == "old readers" and has_zstd and ours[: len(beginning)] == beginning
