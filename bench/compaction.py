"""How fast a log is compacted, on this machine: `python bench/compaction.py`.

Batches of 16 KB as a producer with the default batch.size sends them, each key written about ten
times. MB/s are bytes of the log cleaned a second, each of which is read twice, as Apache Kafka's
cleaner counts ("MB of log processed"); the second rate is per second of processor time.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from pathlib import Path

from urteil.broker.log.checkpoints import ZERO_UUID
from urteil.broker.log.cleaner.cleaner import Cleaner
from urteil.broker.log.cleaner.cleaner_settings import CleanerSettings
from urteil.broker.log.log_config import LogConfig
from urteil.broker.log.partition_log import PartitionLog
from urteil.broker.log.storage import Storage
from urteil.broker.wire.batches import Compression, build_batch

BATCH_BYTES = 16_000
WRITES_PER_KEY = 10
CONFIG = LogConfig(cleanup_policy="compact", segment_bytes=64 << 20)


def _fill_log(folder: Path, size: int, record_bytes: int, codec: int) -> tuple[PartitionLog, int]:
    rng = random.Random(1)
    log = PartitionLog(Storage(), folder, "bench", 0, ZERO_UUID, CONFIG, 0)
    per_batch = max(BATCH_BYTES // record_bytes, 1)
    count = size // record_bytes
    now_ms = time.time_ns() // 1_000_000
    value = rng.randbytes(record_bytes)
    for _ in range(count // per_batch):
        batch = build_batch(
            [
                (b"key-%08d" % rng.randrange(count // WRITES_PER_KEY), value, (), now_ms)
                for _ in range(per_batch)
            ],
            compression=codec,
        )
        assert not log.append_as_leader(memoryview(batch), 0, now_ms).error
    log.roll(now_ms)
    log.update_high_watermark(log.log_end_offset)
    return log, count


def _clean(size: int, record_bytes: int, codec: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        log, records = _fill_log(Path(folder), size, record_bytes, codec)
        before = log.size
        cleaner = Cleaner(lambda: [log], CleanerSettings(), lambda _: None)
        wall, processor = time.perf_counter(), time.process_time()
        cleaner.tick(time.time_ns() // 1_000_000)
        wall, processor = time.perf_counter() - wall, time.process_time() - processor
        assert log.cleaned_to == log.log_end_offset
        print(
            f"{record_bytes:>6} B {Compression(codec).name.lower():>6} {before / 1e6:>8,.1f} MB "
            f"{before / wall / 1e6:>8,.1f} MB/s {records / wall:>12,.0f} records/s "
            f"{before / processor / 1e6:>8,.1f} MB/processor second, "
            f"{cleaner.last_totals.records_kept} of {cleaner.last_totals.records_read} records stay"
        )
        log.close(clean=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=100, help="how much is written a row")
    size = parser.parse_args().megabytes * 1_000_000
    for record_bytes in (10_000, 1000, 100):
        for codec in (Compression.NONE, Compression.LZ4, Compression.ZSTD):
            _clean(size, record_bytes, codec)


if __name__ == "__main__":
    main()
