"""Metrics of log compaction (`LogCleaner`, `LogCleanerManager`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from urteil.broker.log.cleaner.cleaner import Cleaner
from urteil.broker.metrics.text_format import Family, Sample, build_family, build_single


def cleaner_families(
    cleaner: Cleaner, directories: Sequence[Path], now_ms: int
) -> Iterator[Family]:
    """The metric families of both classes. `now_ms` and `cleaner.last_search_ms` share a clock."""
    manager, threads = "kafka_log_logcleanermanager", "kafka_log_logcleaner"
    yield build_single(f"{manager}_max_dirty_percent", int(100 * cleaner.max_ratio))
    since_ms = now_ms - cleaner.last_search_ms if cleaner.last_search_ms is not None else 0
    yield build_single(f"{manager}_time_since_last_run_ms", since_ms)
    samples: list[Sample] = [
        ((("logDirectory", str(path)),), len(cleaner.uncleanable(path))) for path in directories
    ]
    yield build_family(f"{manager}_uncleanable_partitions_count", samples)
    last = cleaner.last_totals
    recopied = int(100 * last.bytes_written / max(last.bytes_read, 1))
    yield build_single(f"{threads}_cleaner_recopy_percent", recopied)
    yield build_single(f"{threads}_max_clean_time_secs", cleaner.last_duration_ms // 1000)
    yield build_single(f"{threads}_max_buffer_utilization_percent", int(100 * last.map_utilization))
    yield build_single(f"{threads}_max_compaction_delay_secs", cleaner.max_delay_ms // 1000)
