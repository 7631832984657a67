"""Nights with simulated runs: ever new seeds, no lost run, no kept run without need."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.harness.hunt.rows import row
from tests.waiting import until
from urteil.chaos.observations import LabFailure
from urteil.harness.hunt import Job, Row
from urteil.harness.hunt.matrix import ExpectedCatch, matrix_of
from urteil.harness.hunt.night import Night
from urteil.harness.hunt.night_report import night_text, summary
from urteil.harness.scenario import ClusterSpec, FaultSpec, Scenario
from urteil.harness.verify.rare_states import STATES

CALM = Scenario(name="calm")
KILL = Scenario(name="kill", faults=(FaultSpec(fault="crash", at_s=1.0),))
CABLE = Scenario(name="cable", runtime="docker")
LOSER = ExpectedCatch(name="loser", scenario="kill", guarantee="lost_write")
FOUND = Job(scenario="kill", seed=7, mutant="loser")
LONG = 3600.0


class Killed(BaseException):
    """The end of a hunt that nobody could catch."""


def night(folder: Path, play: Callable[[Job, Path], Row], *, seed: int = 7, **more: Any) -> Night:
    return Night(
        folder=folder,
        scenarios=[CALM, KILL, CABLE],
        targets=["urteil", "kafka"],
        mutants=[LOSER],
        first_seed=seed,
        play=play,
        **more,
    )


def player(runs: int, *, verdict: str = "PASS") -> Callable[[Job, Path], Row]:
    """So many runs with a folder each, then the end."""
    left = iter(range(runs))

    def play(job: Job, out: Path) -> Row:
        if next(left, None) is None:
            raise Killed
        run = out / f"{job.scenario}-{job.target}-{job.mutant}-{job.seed}"
        run.mkdir(parents=True)
        if job.mutant:
            return row(job.scenario, job.seed, "FAIL", mutant=job.mutant, ran=True,
                       violated={"lost_write": 1}, run=run)  # fmt: skip
        outcome = verdict if job.scenario == "kill" else "PASS"
        return row(job.scenario, job.seed, outcome, target=job.target, run=run)

    return play


def hunted(folder: Path, runs: int, **more: str) -> Night:
    hunt = night(folder, player(runs, **more))
    with pytest.raises(Killed):
        hunt.hunt(time.monotonic() + LONG)
    return hunt


def test_round_has_all_scenarios_and_targets_and_its_own_seed(
    tmp_path: Path,
) -> None:
    hunt = hunted(tmp_path, 10)
    by_seed = [{row.job for row in hunt.ledger.rows if row.job.seed == seed} for seed in (7, 8)]
    assert [len(jobs) for jobs in by_seed] == [5, 5]
    assert {(job.scenario, job.target, job.mutant) for job in by_seed[0]} == {
        ("calm", "urteil", None),
        ("kill", "urteil", None),
        ("calm", "kafka", None),
        ("kill", "kafka", None),
        ("kill", "urteil", "loser"),
    }


def test_table_exists_after_a_kill_at_any_moment(tmp_path: Path) -> None:
    hunted(tmp_path, 5)
    table = (tmp_path / "table.md").read_text()
    assert table.startswith("# The night\n5 runs")
    assert "cable needs --runtime docker" in table
    assert len(table.partition("## All runs")[2].strip().splitlines()) == 2 + 5


def test_table_names_the_rare_states_that_no_run_reached() -> None:
    counted = msgspec.structs.replace(row(), states={"unclean_election": 2, "partition_lost": 0})
    mutant = msgspec.structs.replace(row(mutant="loser"), states={"partition_lost": 1})
    text = night_text([counted, row(seed=2), mutant], [LOSER], [])
    states = text.partition("## Rare states")[2].partition("## ")[0]
    assert f"1 of {len(STATES)} rare states reached in 1 run. Never reached:" in states
    assert "partition_lost," in states
    assert "unclean_election" not in states
    assert "## Rare states" not in night_text([row()], [], [])


def test_night_continues_in_its_folder(tmp_path: Path) -> None:
    hunted(tmp_path, 3)
    again = hunted(tmp_path, 7)
    assert len({row.job for row in again.ledger.rows}) == len(again.ledger.rows) == 10


def test_failed_runs_are_kept_and_passed_ones_pruned(tmp_path: Path) -> None:
    hunt = hunted(tmp_path, 5, verdict="UNKNOWN")
    kept = sorted(path.name for path in (tmp_path / "runs").iterdir())
    assert kept == ["kill-kafka-None-7", "kill-urteil-None-7"]
    assert {row.run for row in hunt.ledger.rows if row.verdict == "PASS"} == {""}
    assert hunt.verdict() == "UNKNOWN"
    assert "because" in (tmp_path / "table.md").read_text().partition("## What is not PASS")[2]


def test_a_caught_mutant_does_not_make_a_night_fail(tmp_path: Path) -> None:
    assert hunted(tmp_path, 5).verdict() == "PASS"
    assert hunted(tmp_path / "other", 5, verdict="FAIL").verdict() == "FAIL"


def test_twin_of_a_mutant_with_findings_comes_next(tmp_path: Path) -> None:
    hunt = night(tmp_path, player(8), weights={"loser": 9.0})
    with pytest.raises(Killed):
        hunt.hunt(time.monotonic() + LONG)
    jobs = [row.job for row in hunt.ledger.rows]
    assert jobs[:2] == [FOUND, Job(scenario="kill", seed=7)]
    assert len(set(jobs)) == len(jobs) == 8
    (line,) = matrix_of([LOSER], hunt.ledger.rows).lines
    assert line.caught == len(line.seeds) - bool(jobs[-1].mutant) > 0


def test_summary_has_the_bound_of_clean_seeds() -> None:
    rows = [row("calm", seed, target="kafka") for seed in range(50)]
    table = summary([*rows, row("kill", 1, "FAIL"), row("kill", 2, "UNKNOWN")])
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()]
    assert cells[2] == ["kafka", "all", "50", "50", "0", "0", "40", "", "5.8%"]
    assert cells[3] == ["kafka", "calm", "50", "50", "0", "0", "40", "", "5.8%"]
    assert cells[5] == ["urteil", "kill", "2", "0", "1", "1", "40", "", "100.0%"]


def test_repeated_rejections_end_the_night(tmp_path: Path) -> None:
    def refuse(job: Job, _out: Path) -> Row:
        return msgspec.structs.replace(
            row(job.scenario, job.seed, "UNKNOWN"), job=job, refused=True
        )

    hunt = night(tmp_path, refuse)
    with pytest.raises(LabFailure, match="5 runs were refused one after another: because"):
        hunt.hunt(time.monotonic() + LONG)
    assert len(hunt.ledger.rows) == 5
    mended = night(tmp_path, player(2))
    with pytest.raises(Killed):
        mended.hunt(time.monotonic() + LONG)
    assert len(mended.ledger.rows) == 7, "what was refused before says nothing of the lab now"


def test_a_full_disk_ends_the_night(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("urteil.harness.hunt.night.LEAST_FREE_BYTES", 1 << 60)
    with pytest.raises(LabFailure, match="less than 1 GB is free"):
        night(tmp_path, player(9)).hunt(time.monotonic() + LONG)


def test_run_that_would_end_too_late_does_not_begin(tmp_path: Path) -> None:
    hunt = night(tmp_path, player(10))
    hunt.hunt(time.monotonic() + 1)
    assert hunt.ledger.rows == []
    assert (tmp_path / "table.md").exists()


def test_runs_at_once_are_different_and_stand_in_one_ledger(tmp_path: Path) -> None:
    """Each run waits until three play, so none of them sees another one's row. The night ends when
    the rows of the first seed are written."""
    together = threading.Barrier(3)

    def play(job: Job, out: Path) -> Row:
        with suppress(threading.BrokenBarrierError):
            together.wait(60)
        if job.seed > 7:
            until(lambda: len(hunt.ledger.rows) == 5)
            raise Killed
        return row(job.scenario, job.seed, "PASS", target=job.target, mutant=job.mutant)

    hunt = night(tmp_path, play, at_once=3, end_runs=together.abort)
    with pytest.raises(Killed):
        hunt.hunt(time.monotonic() + LONG)
    jobs = [row.job for row in hunt.ledger.rows]
    assert len(set(jobs)) == len(jobs) == 5
    assert {job.seed for job in jobs} == {7}


def test_runs_that_still_play_are_ended_with_the_night(tmp_path: Path) -> None:
    second, ends = threading.Event(), threading.Event()

    def play(job: Job, out: Path) -> Row:
        if not second.is_set():
            second.set()
            assert ends.wait(60)
            return row(job.scenario, job.seed, "PASS")
        raise LabFailure("too few hosts are left for a run")

    hunt = night(tmp_path, play, at_once=2, end_runs=ends.set)
    with pytest.raises(LabFailure, match="too few hosts"):
        hunt.hunt(time.monotonic() + LONG)
    assert ends.is_set()


def test_night_on_hosts_plays_what_hosts_can(tmp_path: Path) -> None:
    wan = Scenario(name="wan", second=ClusterSpec())
    shift = Scenario(name="shift", faults=(FaultSpec(fault="clock_shift", at_s=1.0),))
    hunt = Night(
        folder=tmp_path,
        scenarios=[CALM, wan, shift],
        targets=["urteil", "kafka:4.4.0"],
        mutants=[],
        first_seed=1,
        play=player(0),
        runtime="ssh",
    )
    assert {(one.scenario, one.target) for one in hunt.candidates} == {
        (scenario, target) for scenario in ("calm", "shift") for target in hunt.targets
    }
    assert hunt.unplayed_scenarios()[0].startswith("wan: a second cluster is there only with")
