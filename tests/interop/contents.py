"""What a partition's leader gives of it, so that two brokers' readings can be compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.conformance.side import Side
from urteil.broker.wire.batches import iter_batches, iter_records
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import (
    FetchRequest,
    ListOffsetsRequest,
    OffsetForLeaderEpochRequest,
)

READ_UNCOMMITTED, READ_COMMITTED = 0, 1
MAX_BYTES = 1 << 20
EARLIEST, LATEST, MAX_TIMESTAMP = -2, -1, -3
Record = tuple[int, int, bytes | None, bytes | None, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """All of a partition: its bytes and records, where they begin and end (high watermark, last
    stable offset), what is aborted, offsets by time, ends of leader epochs."""

    bounds: tuple[int, int, int]
    data: bytes
    records: list[Record]
    aborted: list[tuple[int, int]]
    by_time: list[tuple[int, int]]
    epochs: list[tuple[int, int]]


def contents(side: Side, topic: str, *, epochs: int, by_time: bool) -> Contents:
    """Read partition 0 of `topic`, where each of its first `epochs` leader epochs ended, and, if
    `by_time`, where its timestamps stand."""
    plain = _read(side, topic, READ_UNCOMMITTED)
    stable = _read(side, topic, READ_COMMITTED)
    data = b"".join(bytes(batch.records or b"") for batch in plain)
    records = [
        (record.offset, record.timestamp_ms, record.key, record.value, tuple(record.headers))
        for _, batch in iter_batches(memoryview(data))
        for record in iter_records(batch)
    ]
    times = sorted({record[1] for record in records})
    asked = [EARLIEST, LATEST]
    if by_time:
        asked += [MAX_TIMESTAMP, *times[:: max(1, len(times) // 40)]]
    return Contents(
        bounds=(plain[0].log_start_offset, plain[0].high_watermark, stable[0].last_stable_offset),
        data=data,
        records=records,
        aborted=sorted(
            {(each.producer_id, each.first_offset) for batch in stable for each in _aborted(batch)}
        ),
        by_time=[_offset_at(side, topic, time_ms) for time_ms in asked],
        epochs=[_epoch_end(side, topic, epoch) for epoch in range(epochs)],
    )


def _aborted(answer: Any) -> Any:
    return answer.aborted_transactions or ()


def _read(side: Side, topic: str, isolation: int) -> list[Any]:
    """The answers of a consumer that reads on from what it got."""
    answers: list[Any] = []
    offset = 0
    while True:
        partition = FetchRequest.FetchPartition(
            partition=0, fetch_offset=offset, partition_max_bytes=MAX_BYTES
        )
        request = FetchRequest(
            max_wait_ms=0,
            isolation_level=isolation,
            topics=[FetchRequest.FetchTopic(topic=topic, partitions=[partition])],
        )
        answer = side.get(request, 11).responses[0].partitions[0]
        assert answer.error_code == ErrorCode.NONE, (topic, offset, answer.error_code)
        data = memoryview(bytes(answer.records or b""))
        headers = [header for header, _ in iter_batches(data, allow_partial_tail=True)]
        answers.append(answer)
        if not headers:
            return answers
        offset = headers[-1].last_offset + 1


def _offset_at(side: Side, topic: str, time_ms: int) -> tuple[int, int]:
    """Offset and timestamp of the first record from that time on."""
    partition = ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=time_ms)
    request = ListOffsetsRequest(
        replica_id=-1,
        topics=[ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=[partition])],
    )
    answer = side.get(request, 7).topics[0].partitions[0]
    assert answer.error_code == ErrorCode.NONE, (topic, time_ms, answer)
    return answer.offset, answer.timestamp


def _epoch_end(side: Side, topic: str, epoch: int) -> tuple[int, int]:
    asked = OffsetForLeaderEpochRequest.OffsetForLeaderPartition(partition=0, leader_epoch=epoch)
    request = OffsetForLeaderEpochRequest(
        topics=[OffsetForLeaderEpochRequest.OffsetForLeaderTopic(topic=topic, partitions=[asked])]
    )
    answer = side.get(request, 3).topics[0].partitions[0]
    assert answer.error_code == ErrorCode.NONE, (topic, epoch, answer)
    return answer.leader_epoch, answer.end_offset
