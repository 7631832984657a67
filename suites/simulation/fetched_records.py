"""Records of an answer to a fetch, as a consumer passes them on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from urteil.broker.wire.batches import BatchHeader, iter_batches, iter_records

_MARKERS = ("abort", "commit")


class Fetched(NamedTuple):
    """A record as a broker returned it."""

    offset: int
    value: str
    leader_epoch: int
    key: str | None
    timestamp_ms: int


class FetchAnswer(NamedTuple):
    """An answer: `end` is the high watermark or the last stable offset, `next_offset` is the offset
    behind all batches."""

    error: int
    end: int
    records: list[Fetched]
    next_offset: int


def stored_batches(data: Any) -> list[tuple[BatchHeader, Any]]:
    if data is None:
        return []
    frames = b"".join(data) if isinstance(data, list) else data
    return list(iter_batches(frames, allow_partial_tail=True))


def visible_batches(data: Any, aborted: list[tuple[int, int]]) -> Iterator[tuple[BatchHeader, Any]]:
    """What a consumer passes on: no markers, and nothing of the aborted transactions, each given as
    its first offset and its producer."""
    ahead, open_ids = sorted(aborted, reverse=True), set()
    for header, batch in stored_batches(data):
        while ahead and ahead[-1][0] <= header.last_offset:
            open_ids.add(ahead.pop()[1])
        if header.is_control:
            open_ids.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in open_ids):
            yield header, batch


def batch_records(header: BatchHeader, batch: Any, start: int = 0) -> Iterator[Fetched]:
    """Every record of a batch from `start` on."""
    for record in iter_records(batch):
        if record.offset >= start:
            key = None if record.key is None else bytes(record.key).decode()
            yield Fetched(
                record.offset, value_id(record), header.partition_leader_epoch, key,
                record.timestamp_ms,
            )  # fmt: skip


def control_kind(marker: Any) -> str:
    """Whether a control record is the marker of an `abort` or of a `commit`."""
    return _MARKERS[int.from_bytes((marker.key or b"")[2:4], "big")]


def value_id(record: Any) -> str:
    """The first word of the value, or of a tombstone's header."""
    text = record.headers[0][1] if record.value is None and record.headers else record.value
    return (text or b"").decode().split(" ")[0]
