"""The conditions for a bug that is found again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from tests.harness.hunt.rows import row
from urteil.harness.hunt import Job, Row
from urteil.harness.hunt.bug_table import BugTable, bug_jobs, bug_table, bug_table_text
from urteil.harness.hunt.night import Night
from urteil.harness.known_bugs import KnownBug
from urteil.reports.matrix import write_bug_table

BUG = KnownBug(
    name="kafka-1", issue="KAFKA-1", about="an acknowledged record is lost", releases="1.0.0",
    fixed_in="1.0.1", broken="1.0.0", fixed="1.0.1", scenario="s", guarantee="lost_write",
    sub_kinds=("tail", "divergent"),
)  # fmt: skip
FOUND = {"lost_write": 3}


def played(
    target: str,
    seed: int = 1,
    verdict: str = "PASS",
    shows: str = "",
    violated: dict[str, int] | None = None,
) -> Row:
    base = row(seed=seed, verdict=verdict, target=target, violated=violated)
    job = msgspec.structs.replace(base.job, bug=BUG.name)
    return msgspec.structs.replace(base, job=job, shows=[shows] if shows else [])


def shown_row(
    seed: int = 1, target: str = BUG.broken_target, shows: str = "lost_write/tail"
) -> Row:
    return played(target, seed, "FAIL", shows, violated=FOUND)


def fixed(seed: int = 1, verdict: str = "PASS") -> Row:
    return played(BUG.fixed_target, seed, verdict)


def of(*rows: Row) -> BugTable:
    return bug_table([BUG], rows)


def test_each_seed_is_played_on_both_releases() -> None:
    jobs = bug_jobs([BUG], [1, 2])
    assert [(job.target, job.seed) for job in jobs] == [
        ("kafka:1.0.0", 1), ("kafka:1.0.1", 1), ("kafka:1.0.0", 2), ("kafka:1.0.1", 2),
    ]  # fmt: skip
    assert jobs[0].arguments() == ["run", "s", "--seed", "1", "--target", "kafka:1.0.0"]


def test_permitted_anomaly_counts_only_where_the_bug_declares_it() -> None:
    shown = msgspec.structs.replace(played(BUG.broken_target), must_find={"lost_write": True})
    missed = msgspec.structs.replace(played(BUG.fixed_target), must_find={"lost_write": False})
    permitted = replace(BUG, permitted=True)
    assert of(shown, missed).lines[0].found == 0
    (line,) = bug_table([permitted], [shown, missed]).lines
    assert (line.found, line.fixed_found) == (1, 0)


def test_violation_that_timing_decides_counts_as_the_bug() -> None:
    late = played(BUG.broken_target, 1, "FAIL", "slow_recovery/late", violated={"slow_recovery": 1})
    (line,) = bug_table([replace(BUG, or_shown_by=("slow_recovery/late",))], [late]).lines
    assert (line.found, line.first_s) == (1, list(late.first_s.values()))
    assert of(late).lines[0].found == 0


@pytest.mark.parametrize(
    ("rows", "verdict"),
    [
        ([shown_row(), fixed()], "PASS"),
        ([shown_row(shows="lost_write/divergent"), fixed()], "PASS"),
        ([shown_row(shows="lost_write/tail, on some replicas"), fixed()], "PASS"),
        ([*(shown_row(seed) for seed in range(8)), played(BUG.broken_target, 8),
          played(BUG.broken_target, 9), fixed()], "PASS"),
        ([*(shown_row(seed) for seed in range(7)), played(BUG.broken_target, 8),
          played(BUG.broken_target, 9), played(BUG.broken_target, 10), fixed()], "FAIL"),
        ([played(BUG.broken_target), fixed()], "FAIL"),
        ([shown_row(shows="lost_write/gap"), fixed()], "FAIL"),
        ([shown_row(shows="duplicate/pass"), fixed()], "FAIL"),
        ([shown_row(), shown_row(target=BUG.fixed_target)], "FAIL"),
        ([shown_row(), fixed(verdict="UNKNOWN")], "UNKNOWN"),
        ([played(BUG.broken_target, verdict="UNKNOWN"), fixed()], "UNKNOWN"),
        ([shown_row()], "UNKNOWN"),
        ([], "UNKNOWN"),
    ],
)  # fmt: skip
def test_found_bug_requires_a_fixed_release_without_it(rows: list[Row], verdict: str) -> None:
    assert of(*rows).verdict == verdict


def test_runs_of_other_bugs_and_plain_runs_are_not_counted() -> None:
    other = msgspec.structs.replace(
        shown_row(), job=Job(scenario="s", seed=1, target="kafka:1.0.0")
    )
    assert of(other).lines[0].tries == []


def test_table_and_page_name_the_findings_of_both_releases(tmp_path: Path) -> None:
    table = of(shown_row(), shown_row(2), played(BUG.broken_target, 3, "UNKNOWN"), fixed())
    text, html = bug_table_text(table), write_bug_table(tmp_path, table).read_text()
    for cell in ("2 of 3, 1 UNKNOWN", "7.5 s", "0 of 1", "lost_write 2", "KAFKA-1"):
        assert cell in text
        assert cell in html


def test_night_plays_the_fixed_release_after_a_finding(tmp_path: Path) -> None:
    night = Night(
        folder=tmp_path, scenarios=[], targets=["kafka"], mutants=[], first_seed=1, bugs=[BUG],
        play=lambda _job, _out: row(),
    )  # fmt: skip
    job = night.next_job()
    assert job == Job(scenario="s", seed=1, target="kafka:1.0.0", bug="kafka-1")
    night.ledger.add(shown_row())
    assert night.next_job() == Job(scenario="s", seed=1, target="kafka:1.0.1", bug="kafka-1")
    night.ledger.add(fixed())
    assert night.next_job() == Job(scenario="s", seed=2, target="kafka:1.0.0", bug="kafka-1")
    night.write()
    assert "1 of 1" in (tmp_path / "table.md").read_text().partition("## Published bugs")[2]
    assert night.verdict() == "UNKNOWN", "no plain run was played"
