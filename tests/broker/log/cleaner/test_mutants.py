"""Mutants of the cleaner fail a check that the broker passes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.broker.log.cleaner.helpers import COMPACTED, clean, newest, pairs, put
from tests.broker.log.helpers import NOW_MS, close_logs, open_log
from urteil.broker.log.partition_log import PartitionLog
from urteil.suites.mutants import MUTANTS, patching
from urteil.suites.mutants.patching import Mark

Check = Callable[[PartitionLog], bool]


def latest_values(log: PartitionLog) -> bool:
    for n in range(6):
        put(log, (b"a", b"%d" % n))
    log.roll(NOW_MS)
    before = newest(pairs(log))
    clean(log)
    return newest(pairs(log)) == before


def tombstone_is_kept(log: PartitionLog) -> bool:
    put(log, (b"a", b"1"), (b"b", b"1"))
    gone = put(log, (b"a", None), (b"b", b"2"))
    log.roll(NOW_MS)
    clean(log)
    return (gone, b"a", None) in pairs(log)


def active_segment_is_left(log: PartitionLog) -> bool:
    for n in range(3):
        put(log, (b"a", b"%d" % n))
    clean(log)
    return len(pairs(log)) == 3


def offsets_stay(log: PartitionLog) -> bool:
    put(log, (b"a", b"1"), (b"b", b"1"), (b"c", b"1"))
    put(log, (b"b", b"2"))
    log.roll(NOW_MS)
    clean(log)
    return [offset for offset, _, _ in pairs(log)] == [0, 2, 3]


def gaps_are_passed(log: PartitionLog) -> bool:
    put(log, (b"a", b"1"))
    put(log, (b"a", b"2"), base_offset=5)
    log.roll(NOW_MS)
    clean(log)
    return [offset for offset, _, _ in pairs(log)] == [5]


def cleaned_log_is_cleaned_again(log: PartitionLog) -> bool:
    for value in (b"1", b"2"):
        put(log, (b"a", value), (b"b", value))
        log.roll(NOW_MS)
        clean(log)
    return [offset for offset, _, _ in pairs(log)] == [2, 3]


CHECKS: dict[str, Check] = {
    "cleaner_drops_latest": latest_values,
    "cleaner_drops_tombstone_at_once": tombstone_is_kept,
    "cleaner_cleans_active_segment": active_segment_is_left,
    "cleaner_renumbers": offsets_stay,
    "offset_gap_breaks_cleaner": gaps_are_passed,
    "cleaner_ends_at_second_cleaning": cleaned_log_is_cleaned_again,
}


@pytest.fixture
def mutate() -> Iterator[Callable[[str, Path], None]]:
    """Apply a mutant for the length of a test."""
    yield lambda name, mark: MUTANTS[name].apply(Mark(mark))
    patching.undo()


@pytest.mark.parametrize(("name", "check"), CHECKS.items(), ids=list(CHECKS))
def test_mutant_fails_the_check_that_the_broker_passes(
    name: str, check: Check, tmp_path: Path, mutate: Callable[[str, Path], None]
) -> None:
    config = replace(COMPACTED, delete_retention_ms=86_400_000)
    for kind in ("unmodified", "mutated"):
        if kind == "mutated":
            mutate(name, tmp_path / "mark")
        folder = tmp_path / kind
        folder.mkdir()
        log = open_log(folder, config=config)
        assert check(log) == (kind == "unmodified")
        close_logs(log)
    assert (tmp_path / "mark").exists()
