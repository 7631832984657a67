"""Selection, extent and cancellation of cleanings."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from tests.broker.log.cleaner.helpers import COMPACTED, clean, cleaner_of, newest, pairs, put
from tests.broker.log.helpers import NOW_MS, append, batch, close_logs, open_log
from urteil.broker.log.cleaner.candidates import find_candidate
from urteil.broker.log.cleaner.cleaner import Cleaner
from urteil.broker.log.cleaner.cleaner_settings import CleanerSettings
from urteil.broker.log.cleaner.offset_map import OffsetMap
from urteil.broker.log.log_config import LogConfig
from urteil.broker.log.partition_log import PartitionLog
from urteil.broker.log.storage import Buffer, File, Storage

DAY_MS = 86_400_000
Job = Callable[[], None]


def filled(folder: Path, config: LogConfig = COMPACTED, segments: int = 4) -> PartitionLog:
    """Segments of five batches with the same keys, the last of them active."""
    folder.mkdir(exist_ok=True)
    log = open_log(folder, config=config)
    for segment in range(segments):
        for number in range(5):
            put(log, (b"k%d" % number, b"%d" % segment), timestamp_ms=NOW_MS + segment * DAY_MS)
        if segment < segments - 1:
            log.roll(NOW_MS)
    return log


def offsets(log: PartitionLog) -> list[int]:
    return [offset for offset, _, _ in pairs(log)]


# -- what is cleaned ----------------------------------------------------------------------------


def test_active_segment_is_not_cleaned(tmp_path: Path) -> None:
    log = filled(tmp_path)
    clean(log)
    assert offsets(log) == list(range(10, 20))
    assert (log.cleaned_to, log.log_end_offset) == (15, 20)
    assert log.segments.base_offsets == [0, 15]


def test_cleaning_ends_at_the_last_stable_offset(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.high_watermark = 12  # in the third segment
    clean(log)
    assert offsets(log) == list(range(5, 20))
    log.high_watermark = 20
    clean(log)
    assert offsets(log) == list(range(10, 20))


def test_cleaning_ends_before_an_open_transaction(tmp_path: Path) -> None:
    log = filled(tmp_path, segments=3)
    put(log, (b"k0", b"open"), producer_id=1, producer_epoch=0, base_sequence=0,
        transactional=True)  # fmt: skip
    for _ in range(2):
        log.roll(NOW_MS)
        put(log, (b"k0", b"later"))
    clean(log)
    assert log.cleaned_to == 10, "the segment in which the transaction begins"


def test_records_younger_than_min_compaction_lag_are_not_cleaned(tmp_path: Path) -> None:
    log = filled(tmp_path, replace(COMPACTED, min_compaction_lag_ms=DAY_MS))
    clean(log, NOW_MS + DAY_MS - 1)
    assert log.cleaned_to is None
    clean(log, NOW_MS + 2 * DAY_MS)
    assert log.cleaned_to == 10


def test_log_is_due_above_its_dirty_ratio(tmp_path: Path) -> None:
    log = filled(tmp_path, replace(COMPACTED, min_cleanable_dirty_ratio=0.5))
    clean(log)
    assert log.cleaned_to == 15
    log.roll(NOW_MS)
    put(log, (b"k", b"v"))
    assert find_candidate(log, NOW_MS).ratio == 0.5
    clean(log)
    assert log.cleaned_to == 15, "half is not more than half"
    log.config = replace(log.config, min_cleanable_dirty_ratio=0.49)
    clean(log)
    assert log.cleaned_to == 20


def test_max_compaction_lag_makes_a_log_due(tmp_path: Path) -> None:
    config = replace(COMPACTED, min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=DAY_MS)
    log = filled(tmp_path, config)
    cleaner = clean(log, NOW_MS + DAY_MS)
    assert log.cleaned_to is None
    cleaner.tick(NOW_MS + DAY_MS + 20_000)
    assert log.cleaned_to == 15
    assert cleaner.max_delay_ms == 0
    assert config.max_segment_ms == DAY_MS, "an active segment may not last longer either"


def test_dirtiest_log_is_cleaned_first(tmp_path: Path) -> None:
    started: list[Job] = []
    less, more = filled(tmp_path / "less"), filled(tmp_path / "more")
    clean(less)
    less.roll(NOW_MS)
    put(less, (b"k", b"v"))
    cleaner = Cleaner(
        lambda: [less, more], CleanerSettings(), lambda _: None, background=started.append
    )
    cleaner.tick(NOW_MS)
    assert len(started) == 1, "one thread"
    while started:
        started.pop()()
        cleaner.tick(NOW_MS)
    assert (more.cleaned_to, less.cleaned_to) == (15, 20)
    assert cleaner.max_ratio == 0.0


@pytest.mark.parametrize("cleaned_to", [-5, 1000])
def test_impossible_cleaned_offset_starts_over(tmp_path: Path, cleaned_to: int) -> None:
    log = filled(tmp_path)
    log.cleaned_to = cleaned_to
    clean(log)
    assert (log.cleaned_to, offsets(log)) == (15, list(range(10, 20)))


def test_cleaning_starts_inside_a_segment_without_further_records(tmp_path: Path) -> None:
    log = filled(tmp_path)
    clean(log)
    log.update_high_watermark(20)
    log.increment_log_start_offset(15)
    log.roll(NOW_MS)
    put(log, (b"k", b"v"))
    log.cleaned_to = 14
    clean(log)
    assert log.cleaned_to == 20


def test_small_offset_map_needs_several_rounds(tmp_path: Path) -> None:
    log = open_log(tmp_path, config=COMPACTED)
    for number in range(300):
        put(log, (b"key-%d" % (number % 90), b"%d" % number))
    state = newest(pairs(log))
    clean(log, dedupe_buffer_size=5000)
    assert log.cleaned_to == log.segments.active_segment.base_offset
    cleaned = [pair for pair in pairs(log) if pair[0] < log.cleaned_to]
    assert newest(pairs(log)) == state
    assert len({key for _, key, _ in cleaned}) == len(cleaned)
    close_logs(log)


def test_small_segments_are_merged_up_to_the_segment_size(tmp_path: Path) -> None:
    config = replace(COMPACTED, segment_bytes=2000)
    log = open_log(tmp_path, config=config)
    for number in range(100):
        put(log, (b"%d" % number, b"x" * 100))
    before = len(log.segments)
    clean(log)
    assert len(log.segments) == before, "all are unique and full"
    for number in range(90):
        put(log, (b"%d" % number, b""))
    clean(log)
    log.roll(NOW_MS)
    put(log, (b"0", b""))
    clean(log)
    assert all(segment.size <= 2000 for segment in log.segments)
    assert len(log.segments) < before


def test_segments_with_distant_offsets_are_not_merged(tmp_path: Path) -> None:
    log = open_log(tmp_path, config=COMPACTED)
    bases = [0, 2**31 - 10, 2**31 - 5, 2**31 + 5]
    for offset in bases:
        log.roll(NOW_MS, offset)
        put(log, (b"%d" % offset, b"v"), base_offset=offset)
    log.roll(NOW_MS)
    clean(log)
    assert offsets(log) == bases
    assert log.segments.base_offsets == [0, 2**31 - 5, 2**31 + 6]


# -- what stays ---------------------------------------------------------------------------------


def test_unchanged_batches_are_copied_byte_for_byte(tmp_path: Path) -> None:
    log = open_log(tmp_path, config=COMPACTED)
    for number in range(20):
        put(log, (b"%d" % number, b"v"), (b"x%d" % number, b"v"), compression=number % 5)
    log.roll(NOW_MS)
    content = b"".join(segment.path(".log").read_bytes() for segment in log.segments)
    clean(log)
    assert b"".join(segment.path(".log").read_bytes() for segment in log.segments) == content


def test_offset_map_detects_superseded_batches_by_their_offsets() -> None:
    offsets = OffsetMap(1000)
    offsets.begin(10)
    offsets.put([(b"a", 10), (b"b", 11)])
    offsets.put([(b"a", 14), (b"c", 15)])
    offsets.latest_offset = 19
    superseded = [
        (first, last)
        for first, last in ((0, 9), (5, 12), (10, 10), (10, 11), (12, 13), (13, 14), (16, 19))
        if offsets.supersedes(first, last)
    ]
    assert superseded == [(10, 10), (12, 13), (16, 19)]
    assert not offsets.supersedes(16, 20)


def test_records_without_a_key_are_removed(tmp_path: Path) -> None:
    log = filled(tmp_path, segments=2)
    put(log, (None, b"from a time when the topic was not compacted"))
    log.roll(NOW_MS)
    clean(log)
    assert None not in [key for _, key, _ in pairs(log)]


def test_last_batch_of_a_round_stays(tmp_path: Path) -> None:
    """KAFKA-17076: with it gone, a follower at 5 would never get to the end, 6."""
    log = filled(tmp_path, segments=2)
    put(log, (b"gone", None))
    log.roll(NOW_MS)
    clean(log)
    log.cleaned_to = 0
    clean(log, NOW_MS + 1000)
    assert offsets(log) == list(range(5, 10))
    read = log.read(10, 1000, upto=log.log_end_offset)
    assert read.next_offset == log.log_end_offset == 11
    assert len(read.records) == 1


# -- what stops it ------------------------------------------------------------------------------


def begun(log: PartitionLog, **settings: int) -> tuple[Cleaner, list[Job]]:
    """A cleaning whose first job waits to be run."""
    jobs: list[Job] = []
    cleaner = Cleaner(
        lambda: [log], CleanerSettings(**settings), lambda _: None, background=jobs.append
    )
    cleaner.tick(NOW_MS)
    assert jobs
    return cleaner, jobs


def _truncate(log: PartitionLog) -> None:
    log.truncate_to(7)


def _start_anew(log: PartitionLog) -> None:
    log.truncate_fully_and_start_at(50)


def _no_compaction(log: PartitionLog) -> None:
    log.config = replace(log.config, cleanup_policy="delete")


def _other_policy_and_back(log: PartitionLog) -> None:
    """The retention of the manager let segments go in between."""
    log.config = replace(log.config, cleanup_policy="delete", retention_bytes=1)
    log.apply_retention(NOW_MS)
    log.config = COMPACTED


@pytest.mark.parametrize("change", [_truncate, _start_anew, _no_compaction, _other_policy_and_back])
@pytest.mark.parametrize("jobs_before", [0, 1, 2])
@pytest.mark.parametrize("then_run", [True, False])
def test_change_of_the_log_cancels_its_cleaning(
    tmp_path: Path, change: Callable[[PartitionLog], None], jobs_before: int, then_run: bool
) -> None:
    log = filled(tmp_path, replace(COMPACTED, segment_bytes=500))
    cleaner, jobs = begun(log)
    for _ in range(jobs_before):
        jobs.pop()()
        cleaner.tick(NOW_MS)
    before = [pair for pair in pairs(log)]
    change(log)
    after = [pair for pair in before if pair in pairs(log)]
    cleaner.settings = replace(cleaner.settings, enabled=False)  # let it begin no other
    if then_run:
        jobs.pop()()
    cleaner.tick(NOW_MS)
    if jobs:
        jobs.pop()()
        cleaner.tick(NOW_MS)
    assert pairs(log) == after
    assert log.failure is None
    assert cleaner.uncleanable(tmp_path.parent) == []
    assert not list(tmp_path.glob("*.cleaned"))


def test_deleted_log_is_forgotten_by_the_cleaner(tmp_path: Path) -> None:
    log = filled(tmp_path / "t-0")
    logs = [log]
    jobs: list[Job] = []
    cleaner = Cleaner(lambda: logs, CleanerSettings(), lambda _: None, background=jobs.append)
    cleaner.tick(NOW_MS)
    logs.clear()
    log.rename_for_delete()
    jobs.pop()()
    cleaner.tick(NOW_MS)
    assert (jobs, log.failure) == ([], None)


def test_records_after_a_truncation_are_dirty(tmp_path: Path) -> None:
    log = filled(tmp_path)
    clean(log)
    log.truncate_to(12)
    assert log.cleaned_to == 12
    for number in range(5):
        put(log, (b"k%d" % number, b"anew"))
    log.roll(NOW_MS)
    clean(log)
    assert newest(pairs(log)) == {b"k%d" % number: b"anew" for number in range(5)}
    assert len(pairs(log)) == 5


def test_damaged_log_is_marked_uncleanable_and_others_are_cleaned(tmp_path: Path) -> None:
    damaged, sound = filled(tmp_path / "damaged"), filled(tmp_path / "sound")
    path = damaged.segments[1].path(".log")
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    cleaner = cleaner_of(damaged, sound)
    for n in range(3):
        cleaner.tick(NOW_MS + n * 20_000)
    assert path.read_bytes() == content
    assert sound.cleaned_to == 15
    assert (damaged.cleaned_to, damaged.failure) == (None, None)
    assert cleaner.uncleanable(tmp_path) == [damaged]
    assert not list((tmp_path / "damaged").glob("*.cleaned"))


class _Full(Storage):
    """A disk that takes no `.cleaned` bytes."""

    def open(self, path: Path, *, create: bool = False) -> File:
        file = super().open(path, create=create)
        return _FullFile(path, file._fd) if path.name.endswith(".log.cleaned") else file


class _FullFile(File):
    __slots__ = ()

    def write_at(self, buffers: Sequence[Buffer], size: int, position: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(self.path))


def test_full_disk_fails_the_cleaned_log(tmp_path: Path) -> None:
    log = open_log(tmp_path, config=COMPACTED, storage=_Full())
    append(log, batch([b"a"]))
    log.roll(NOW_MS)
    log.update_high_watermark(1)
    before = pairs(log)
    cleaner_of(log).tick(NOW_MS)
    assert log.failure is not None
    assert log.failure.errno == errno.ENOSPC
    assert pairs(log) == before


# -- how ----------------------------------------------------------------------------------------


def test_cleaning_runs_in_the_background(tmp_path: Path) -> None:
    log = filled(tmp_path, replace(COMPACTED, segment_bytes=500))
    state = newest(pairs(log))
    with ThreadPoolExecutor(1) as pool:
        cleaner = Cleaner(lambda: [log], CleanerSettings(), lambda _: None, background=pool.submit)
        for _ in range(10**6):
            cleaner.tick(NOW_MS)
            if log.cleaned_to == 15:
                break
            assert newest(pairs(log)) == state
    assert newest(pairs(log)) == state


def test_io_rate_limit_is_respected(tmp_path: Path) -> None:
    log = filled(tmp_path, replace(COMPACTED, segment_bytes=500), segments=20)
    size = sum(segment.size for segment in log.segments) - log.segments.active_segment.size
    cleaner = cleaner_of(log, io_max_bytes_per_second=1000)
    now_ms = NOW_MS
    while log.cleaned_to is None:
        ended_ms = now_ms
        now_ms += cleaner.tick(now_ms)
        assert now_ms < NOW_MS + 10**6
    # read twice, and the last segment written
    assert 2 * size <= ended_ms - NOW_MS <= 2.3 * size + 300


def test_backoff_and_disabled_cleaner(tmp_path: Path) -> None:
    log = filled(tmp_path)
    cleaner = cleaner_of(log, backoff_ms=500)
    cleaner.settings = replace(cleaner.settings, enabled=False)
    assert cleaner.tick(NOW_MS) > 0
    assert log.cleaned_to is None
    cleaner.settings = replace(cleaner.settings, enabled=True)
    assert cleaner.tick(NOW_MS) == 500
    assert log.cleaned_to == 15
    log.roll(NOW_MS)
    put(log, (b"k", b"v"))
    assert cleaner.tick(NOW_MS + 499) == 1
    assert log.cleaned_to == 15
    cleaner.tick(NOW_MS - DAY_MS)
    assert log.cleaned_to == 20, "the clock was put back"


def test_cleaner_settings_from_broker_properties() -> None:
    props = {
        "log.cleaner.enable": "false",
        "log.cleaner.threads": "2",
        "log.cleaner.dedupe.buffer.size": "2000000",
        "log.cleaner.io.buffer.load.factor": "0.5",
        "log.cleaner.io.max.bytes.per.second": "1.5E6",
        "log.cleaner.backoff.ms": "7",
    }
    settings = CleanerSettings.from_properties(props)
    assert (settings.enabled, settings.threads, settings.backoff_ms) == (False, 2, 7)
    assert (settings.map_bytes, settings.io_max_bytes_per_second) == (500_000, 1.5e6)
    assert CleanerSettings.from_properties({}) == CleanerSettings()


def test_compact_and_delete_policy_applies_both(tmp_path: Path) -> None:
    config = replace(COMPACTED, cleanup_policy="compact,delete", retention_ms=2 * DAY_MS)
    log = filled(tmp_path, config)
    clean(log, NOW_MS + 5 * DAY_MS)
    assert newest(pairs(log)) == {b"k%d" % n: b"3" for n in range(5)}
    assert log.log_start_offset == 15
