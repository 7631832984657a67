"""The speed at which one partition's log appends and reads batches on this machine: `python
bench/log.py`.

Batches of 16 records of 1 KB, as a producer with the default batch.size sends them. The second rate
is per second of processor time, which host load hardly affects.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from urteil.broker.log.checkpoints import ZERO_UUID
from urteil.broker.log.log_config import LogConfig
from urteil.broker.log.partition_log import PartitionLog
from urteil.broker.log.storage import Storage
from urteil.broker.wire.batches import build_batch
from urteil.broker.wire.records import RecordFields

RECORD_BYTES = 1000
RECORDS = 16


def _batches(count: int, producer_id: int) -> list[memoryview]:
    now_ms = time.time_ns() // 1_000_000
    value = bytes(RECORD_BYTES)
    records: list[RecordFields] = [(None, value, [], now_ms)] * RECORDS
    return [
        memoryview(
            build_batch(
                records,
                leader_epoch=-1,
                producer_id=producer_id,
                producer_epoch=0 if producer_id >= 0 else -1,
                base_sequence=number * RECORDS if producer_id >= 0 else -1,
            )
        )
        for number in range(count)
    ]


class Stopwatch:
    """Wall and processor time since its construction."""

    def __init__(self) -> None:
        self._wall = time.perf_counter()
        self._processor = time.process_time()

    def report(self, what: str, records: int, size: int) -> None:
        """Print the rates since its construction."""
        wall = time.perf_counter() - self._wall
        processor = time.process_time() - self._processor
        print(
            f"{what:30} {records / wall:>12,.0f} records/s {size / wall / 1e6:>9,.1f} MB/s "
            f"{records / processor:>12,.0f} records/processor second"
        )


def _append(log: PartitionLog, batches: list[memoryview], what: str) -> None:
    now_ms = time.time_ns() // 1_000_000
    watch = Stopwatch()
    for batch in batches:
        result = log.append_as_leader(batch, 0, now_ms)
        assert not result.error, result
    watch.report(what, len(batches) * RECORDS, sum(map(len, batches)))


def _read(log: PartitionLog, max_bytes: int, what: str) -> None:
    offset, size, watch = 0, 0, Stopwatch()
    while offset < log.log_end_offset:
        result = log.read(offset, max_bytes, upto=log.log_end_offset)
        offset, size = result.next_offset, size + result.size
    watch.report(what, offset, size)


def _tail(log: PartitionLog, batches: list[memoryview], what: str) -> None:
    """Append and read each batch at once, as a follower's fetch does."""
    now_ms = time.time_ns() // 1_000_000
    size, watch = 0, Stopwatch()
    for batch in batches:
        offset = log.log_end_offset
        log.append_as_leader(batch, 0, now_ms)
        size += log.read(offset, 1 << 20, upto=log.log_end_offset).size
    watch.report(what, len(batches) * RECORDS, size)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=10_000)
    count = parser.parse_args().batches
    config = LogConfig(segment_bytes=64 << 20)
    with tempfile.TemporaryDirectory() as folder:
        now_ms = time.time_ns() // 1_000_000
        log = PartitionLog(Storage(), Path(folder), "bench", 0, ZERO_UUID, config, now_ms)
        _append(log, _batches(count, -1), "append")
        _append(log, _batches(count, 1), "append, idempotent")
        _tail(log, _batches(count // 4, -1), "append and read at the tail")
        _read(log, 1 << 20, "read, 1 MiB at a time")
        _read(log, 16 << 10, "read, 16 KiB at a time")
        end, size = log.log_end_offset, log.size
        watch = Stopwatch()
        log = PartitionLog(Storage(), Path(folder), "bench", 0, ZERO_UUID, config, now_ms)
        assert log.log_end_offset == end
        watch.report("recovery of an unclean log", end, size)
        log.close(clean=False)


if __name__ == "__main__":
    main()
