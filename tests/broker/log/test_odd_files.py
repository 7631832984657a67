"""Odd files beside an undamaged log, as other releases and crashes leave them, lose no record."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from tests.broker.log.damage import manager_of, quick_folder
from tests.broker.log.odd_files import CASES, Case, Place
from tests.broker.log.old_folders import OldLog, draw
from tests.broker.log.test_old_folders import rows_of
from urteil.broker.log import checkpoints

TOPIC = "t"


def whole_log(*magics: int) -> OldLog:
    """The first drawn log without damage in three segments of these formats."""
    return next(
        log
        for log in map(draw, count(1000))
        if {batch.magic for batch in log.batches} == set(magics)
        and len(log.bases) == 3
        and not log.hurt_file
        and not log.leaps
    )


def place(data: Path, log: OldLog, *, clean: bool) -> Place:
    """A directory that holds the log, and its checkpoints."""
    folder = data / f"{TOPIC}-0"
    log.write(folder)
    end = log.rows[-1].offset + 1
    (folder / checkpoints.PARTITION_METADATA).write_text(
        "version: 0\ntopic_id: jyBLnm1AQHafQvz2OHjKhg"
    )
    for name in (checkpoints.RECOVERY_POINTS, checkpoints.HIGH_WATERMARKS):
        (data / name).write_text(f"0\n1\n{TOPIC} 0 {end}\n")
    if clean:
        (data / checkpoints.CLEAN_SHUTDOWN).touch()
    return Place(data, folder, log)


@pytest.mark.parametrize("clean", [True, False], ids=["clean", "unclean"])
@pytest.mark.parametrize("magics", [(0, 1, 2), (2,)], ids=["mixed", "newest"])
def test_odd_file_removes_no_record(magics: tuple[int, ...], clean: bool) -> None:
    failures = []
    log = whole_log(*magics)
    for case in CASES:
        with quick_folder() as folder:
            try:
                _check(case, place(Path(folder), log, clean=clean))
            except Exception as error:
                text = str(error).replace("\n", " ")[:200]
                failures.append(f"{case.name}: {type(error).__name__}: {text}")
    if failures:
        pytest.fail(f"{len(failures)}:\n" + "\n".join(failures), pytrace=False)


def _check(case: Case, where: Place) -> None:
    case.act(where)
    manager = manager_of(where.data)
    manager.load("cluster")
    log = manager.get(TOPIC, 0)
    assert log is not None, "no log"
    assert rows_of(log, where.log.rows) == case.rows(where.log), "other records"
    assert log.log_end_offset == where.log.rows[-1].offset + 1
    manager.shutdown()
