"""Times that nodes stamped with wall clocks of their own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from urteil.harness.evidence.journal import CLOCKS_SET
from urteil.harness.evidence.readers.wall_clocks import WallClocks, read_wall_clocks

SECOND_NS = 1_000_000_000
WALL_S = 1_000_000
"""The lab's wall clock at 0 of the monotonic clock."""
END_S = 200
"""The end of the run."""


def clocks(run_dir: Path, *settings: tuple[str, float, float]) -> WallClocks:
    """The clocks after settings of node, time in s, and lead in s."""
    lines = [
        json.dumps({"node": node, "at_ns": int(at_s * SECOND_NS), "ahead_s": ahead_s}) + "\n"
        for node, at_s, ahead_s in settings
    ]
    (run_dir / CLOCKS_SET).write_text("".join(lines))
    return read(run_dir)


def read(run_dir: Path) -> WallClocks:
    return read_wall_clocks(run_dir, WALL_S * SECOND_NS, END_S * SECOND_NS)


def stamped_s(
    known: WallClocks, wall_s: float, node: int | None = 1001, *, after_s: float = 0
) -> float:
    after_ns = int(after_s * SECOND_NS)
    return known.monotonic_ns(round(wall_s * 1000), node, after_ns=after_ns) / SECOND_NS


def test_clock_that_was_never_set_is_the_labs(tmp_path: Path) -> None:
    assert stamped_s(read(tmp_path), WALL_S + 5) == 5
    known = clocks(tmp_path, ("q2", 0, 0), ("q2", 10, 300))
    assert stamped_s(known, WALL_S + 315) == 315
    assert stamped_s(known, WALL_S + 315, None) == 315


@pytest.mark.parametrize("ahead_s", [300, -300])
@pytest.mark.parametrize(
    ("at_s", "is_ahead"), [(0, False), (9, False), (11, True), (29, True), (31, False)]
)
def test_stamp_is_that_of_the_clock_at_its_time(
    tmp_path: Path, at_s: float, is_ahead: bool, ahead_s: float
) -> None:
    known = clocks(tmp_path, ("q1", 0, 0), ("q1", 10, ahead_s), ("q1", 30, 0))
    assert stamped_s(known, WALL_S + at_s + is_ahead * ahead_s) == at_s


def test_stamps_follow_one_another_though_the_clock_jumped_back(tmp_path: Path) -> None:
    known = clocks(tmp_path, ("q1", 0, 0), ("q1", 100, -60))
    assert stamped_s(known, WALL_S + 50, after_s=49) == 50
    assert stamped_s(known, WALL_S + 50, after_s=109) == 110


def test_stamp_of_a_node_that_follows_late_is_not_after_the_run(tmp_path: Path) -> None:
    known = clocks(tmp_path, ("q1", 0, 0), ("q1", 10, 300), ("q1", 30, 0))
    assert stamped_s(known, WALL_S + 331.2, after_s=31) == 31.2


def test_stamp_of_a_drifting_clock_is_off_by_less_than_a_second(tmp_path: Path) -> None:
    steps = [("b1", 10 + step / 4, step / 8) for step in range(40)]
    known = clocks(tmp_path, ("b1", 0, 0), *steps, ("b1", 20, 0))
    for at_s in (10, 12, 15, 19):
        assert abs(stamped_s(known, WALL_S + at_s + (at_s - 10) / 2, 1) - at_s) < 1


def test_half_a_line_of_a_killed_lab_is_left_out(tmp_path: Path) -> None:
    clocks(tmp_path, ("q1", 0, 0), ("q1", 10, 300))
    with (tmp_path / CLOCKS_SET).open("a") as file:
        file.write('{"node": "q1", "at_')
    assert stamped_s(read(tmp_path), WALL_S + 320) == 20
