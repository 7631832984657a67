"""Metrics of log compaction (`LogCleaner`, `LogCleanerManager`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from urteil.broker.log.cleaner.cleaner import Cleaner
from urteil.broker.metrics.text_format import Family, Sample, gauge


def cleaner_families(
    cleaner: Cleaner, directories: Sequence[Path], now_ms: int
) -> Iterator[Family]:
    manager, threads = "kafka_log_logcleanermanager", "kafka_log_logcleaner"
    about = "The part of the dirtiest log that was not cleaned and may be"
    yield gauge(f"{manager}_max_dirty_percent", about, int(100 * cleaner.max_ratio))
    about = "Since a log to clean was last looked for"
    since_ms = now_ms - cleaner.last_search_ms if cleaner.last_search_ms is not None else 0
    yield gauge(f"{manager}_time_since_last_run_ms", about, since_ms)
    about = "Logs found damaged, which are not cleaned any more"
    samples: list[Sample] = [
        ((("logDirectory", str(path)),), len(cleaner.uncleanable(path))) for path in directories
    ]
    yield Family(f"{manager}_uncleanable_partitions_count", "gauge", about, samples)
    last = cleaner.last_totals
    about = "Of the bytes read by the last cleaning those that stayed"
    recopied = int(100 * last.bytes_written / max(last.bytes_read, 1))
    yield gauge(f"{threads}_cleaner_recopy_percent", about, recopied)
    about = "What the last cleaning took"
    yield gauge(f"{threads}_max_clean_time_secs", about, cleaner.last_duration_ms // 1000)
    about = "How full the last cleaning's map of keys was"
    utilization = int(100 * last.map_utilization)
    yield gauge(f"{threads}_max_buffer_utilization_percent", about, utilization)
    about = "For how long max.compaction.lag.ms was over for the log that waited longest"
    yield gauge(f"{threads}_max_compaction_delay_secs", about, cleaner.max_delay_ms // 1000)
