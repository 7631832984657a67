"""LogAppendTime of appends that overtake each other while their batches are validated."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.broker.net.raw import run
from tests.broker.replication.hosting import NOW_MS, Hosting
from tests.broker.replication.plain import records
from urteil.broker.wire.batches import iter_stored
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.records import build_batch

KEY = ("t", 0)
BROKER_TIME = {"message.timestamp.type": "LogAppendTime", "compression.type": "gzip"}


def test_append_time_of_an_overtaken_batch_grows_with_the_offset(tmp_path: Path) -> None:
    """A batch of 2 MiB is validated beside the loop, and a small append overtakes it."""
    large = build_batch([(b"k", bytes(2 << 20), (), 0)])

    async def overtake() -> None:
        hosting = Hosting([tmp_path], props={"message.max.bytes": str(4 << 20)},
                          overrides=lambda _: BROKER_TIME)  # fmt: skip
        assert hosting.lead(0) is ErrorCode.NONE
        first = asyncio.ensure_future(
            hosting.replicas.append(1000, 1, {KEY: memoryview(large)}, internal=False)
        )
        await asyncio.sleep(0)
        hosting.clock.ms += 5
        second = await hosting.replicas.append(1000, 1, {KEY: records(1)}, internal=False)
        results = [second[KEY], (await first)[KEY]]
        log = hosting.replicas.partitions[KEY].log
        stored = memoryview(b"".join(log.read(0, 8 << 20, upto=2).records))
        times = [(header.base_offset, header.max_timestamp) for header, _ in iter_stored(stored)]
        assert [(result.base_offset, result.log_append_time_ms) for result in results] == times
        assert times == [(0, NOW_MS + 5), (1, NOW_MS + 5)]
        hosting.close()

    run(overtake())
