"""Batches to send: the same bytes to both sides."""

from __future__ import annotations

import struct
import time
import zlib
from collections.abc import Sequence
from typing import Any

from urteil.broker.wire.batches import build_batch
from urteil.broker.wire.messages import ProduceRequest

NOW_MS = int(time.time() * 1000) // 1000 * 1000
HOUR_MS = "3600000"
"""As far from now as may be, for a topic: `NOW_MS` is the time when the session began."""


def batch(values: Sequence[bytes | None], *, at_ms: int = NOW_MS, **more: Any) -> bytes:
    """One batch of magic 2, keys k0, k1, ..., a second between the timestamps."""
    records = [
        (b"k%d" % n, value, (("h", b"v"),), at_ms + 1000 * n) for n, value in enumerate(values)
    ]
    return build_batch(records, **more)


def message(
    magic: int, offset: int, value: bytes | None, *, at_ms: int = NOW_MS, attributes: int = 0
) -> bytes:
    """One message of magic 0 or 1 in a message set."""
    body = struct.pack(">bb", magic, attributes)
    if magic:
        body += struct.pack(">q", at_ms)
    body += struct.pack(">i", 1) + b"k"
    body += struct.pack(">i", -1) if value is None else struct.pack(">i", len(value)) + value
    framed = struct.pack(">I", zlib.crc32(body)) + body
    return struct.pack(">qi", offset, len(framed)) + framed


def produce(
    topic: str, records: bytes | None, *, acks: int = -1, partition: int = 0, more: Any = (),
    timeout_ms: int = 20_000,
) -> ProduceRequest:  # fmt: skip
    """Records for one partition, or for several: `more` are (topic, partition, records)."""
    return ProduceRequest(
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=[
            ProduceRequest.TopicProduceData(
                name=name,
                partition_data=[ProduceRequest.PartitionProduceData(index=index, records=data)],
            )
            for name, index, data in ((topic, partition, records), *more)
        ],
    )
