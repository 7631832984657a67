"""Fetch requests, and message sets of old versions as messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from tests.conformance.side import CLOSED, Side
from urteil.broker.wire.messages import FetchRequest
from urteil.broker.wire.old_messages import iter_old_messages

STRANGE_ID = UUID("12345678-1234-1234-1234-123456789abc")
PADDING = b"\xff" * 8


def fetch(
    side: Side,
    version: int,
    topic: str,
    partitions: Sequence[dict[str, Any]],
    *,
    to: int = 1,
    topic_id: UUID | None = None,
    **more: Any,
) -> Any:
    """The answer in plain data; message sets are read."""
    topic_id = topic_id or side.ids.get(topic, STRANGE_ID)
    answer = side.ask(fetch_request(topic, partitions, topic_id=topic_id, **more), version, to=to)
    if answer != CLOSED and version < 4:
        _read_messages(answer)
    return answer


def fetch_request(
    topic: str, partitions: Sequence[dict[str, Any]], *, topic_id: UUID = STRANGE_ID, **more: Any
) -> FetchRequest:
    """At its beginning, unless `partitions` say otherwise."""
    return FetchRequest(
        **{"max_wait_ms": 10, "min_bytes": 1, "max_bytes": 1 << 20, **more},
        topics=[
            FetchRequest.FetchTopic(
                topic=topic,
                topic_id=topic_id,
                partitions=[
                    FetchRequest.FetchPartition(
                        **{
                            "partition": 0,
                            "partition_max_bytes": 1 << 20,
                            "fetch_offset": 0,
                            **partition,
                        }
                    )
                    for partition in partitions
                ],
            )
        ],
    )


def _read_messages(answer: Any) -> None:
    """Message sets as messages, and whether the last one was cut: Apache Kafka pads converted
    ones to the size that the batches had, and compressors differ."""
    for topic in answer["responses"]:
        for partition in topic["partitions"]:
            data = partition["records"] or b""
            end = 0
            while end + 12 <= len(data) and data[end : end + 8] != PADDING:
                stop = end + 12 + int.from_bytes(data[end + 8 : end + 12], "big")
                if stop > len(data):
                    break
                end = stop
            read = iter_old_messages(data[:end])
            rows = [(r.offset, r.timestamp_ms, r.key, r.value) for r in read]
            padded = PADDING.startswith(data[end : end + 8])
            partition["records"] = [*rows, "padded or whole" if padded else "cut"]
