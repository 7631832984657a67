"""A log that a power cut left with a gap: its leader goes on, a follower fetches all behind it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.broker.log.damage import manager_of
from tests.broker.replication.plain import Plain, state
from tests.broker.replication.test_truncation import same, settle, write
from urteil.broker.log import gap

FIRST = f"{0:020d}.log"


def with_gap(folder: Path, *, records: int = 20, lost: int = 3, broker_id: int = 1) -> Plain:
    """A log of two segments as it is opened after the end of the first one was lost."""
    plain = Plain(folder, broker_id=broker_id)
    write(plain, [(0, records // 2)])
    plain.log.roll(0)
    write(plain, [(0, records - records // 2)])
    size = plain.log.segments[0].size
    plain.log.close_files()
    os.truncate(folder / FIRST, size - size // (records // 2) * lost)
    return Plain(folder, broker_id=broker_id)


def offsets(plain: Plain) -> list[int]:
    found, at = [], 0
    while at < plain.log.log_end_offset:
        read = plain.log.read(at, 1, upto=plain.log.log_end_offset)
        at = int.from_bytes(b"".join(read.records)[:8], "big")
        found.append(at)
        at += 1
    return found


def test_leader_serves_what_lies_behind_a_gap(tmp_path: Path) -> None:
    plain = with_gap(tmp_path / "a")
    assert (plain.log.log_end_offset, plain.log.missing_from) == (20, 7)
    plain.partition.become_leader(state(1, 1), 0.0)
    assert offsets(plain) == [*range(7), *range(10, 20)]
    assert plain.log.missing_from is None
    assert not list((tmp_path / "a").glob("*.kept"))


def test_follower_fetches_all_from_a_gap_on(tmp_path: Path) -> None:
    leader = Plain(tmp_path / "a")
    write(leader, [(0, 20)])
    follower = with_gap(tmp_path / "b", broker_id=2)
    leader.partition.become_leader(state(1, 1), 0.0)
    follower.partition.become_follower(state(1, 1))
    settle(leader, follower)
    assert same(leader, follower)
    assert follower.log.missing_from is None
    (kept,) = (tmp_path / "b").glob("*.kept")
    assert kept.name == f"{10:020d}.log.kept"


def test_flush_leaves_the_recovery_point_before_a_gap_that_nobody_met(tmp_path: Path) -> None:
    plain = with_gap(tmp_path / "a")
    plain.log.flush()
    assert plain.log.recovery_point == 7
    gap.accept(plain.log)
    plain.log.flush()
    assert plain.log.recovery_point == 20


@pytest.mark.parametrize("is_met", [True, False])
def test_stop_is_clean_once_a_gap_was_met(tmp_path: Path, is_met: bool) -> None:
    with_gap(tmp_path / "t-0").log.close_files()
    manager = manager_of(tmp_path)
    manager.load("cluster")
    log = manager.get("t", 0)
    assert log is not None
    if is_met:
        gap.accept(log)
    manager.shutdown()
    assert (tmp_path / ".kafka_cleanshutdown").exists() is is_met
