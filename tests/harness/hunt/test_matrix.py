"""The conditions for a caught mutant."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.harness.hunt.rows import row
from urteil.harness.hunt import Row
from urteil.harness.hunt.matrix import ExpectedCatch, Matrix, matrix_of, plan_jobs, text_of
from urteil.reports.matrix import write_matrix

LOSER = ExpectedCatch(name="loser", scenario="s", guarantee="lost_write")
DOUBLER = ExpectedCatch(name="doubler", scenario="s", guarantee="duplicate")


def caught(seed: int = 1, **more: object) -> Row:
    given = {"violated": {"lost_write": 3}, "ran": True} | more
    return row(seed=seed, verdict="FAIL", mutant="loser", **given)  # type: ignore[arg-type]


def of(*rows: Row) -> Matrix:
    return matrix_of([LOSER], rows)


def test_twin_is_played_once_per_scenario_and_seed() -> None:
    jobs = plan_jobs([LOSER, DOUBLER], [1, 2])
    assert len(jobs) == 6
    assert [job.seed for job in jobs if job.mutant is None] == [1, 2]


def test_caught_requires_guarantee_hit_and_passing_twin() -> None:
    matrix = of(row(), caught())
    (line,) = matrix.lines
    assert (line.caught, line.ran, line.twins, line.first_s) == (1, 1, 1, [7.5])
    assert matrix.verdict == "PASS"


@pytest.mark.parametrize(
    ("rows", "verdict"),
    [
        ([row(), row(mutant="loser", ran=True)], "FAIL"),
        ([row(), caught(violated={"duplicate": 1})], "FAIL"),
        ([row(), caught(ran=False)], "FAIL"),
        ([row(verdict="FAIL"), caught()], "UNKNOWN"),
        ([row(verdict="UNKNOWN"), caught()], "UNKNOWN"),
        ([caught()], "UNKNOWN"),
        ([row(), row(mutant="loser", verdict="UNKNOWN")], "UNKNOWN"),
        ([], "UNKNOWN"),
    ],
)
def test_other_results_are_not_caught(rows: list[Row], verdict: str) -> None:
    matrix = of(*rows)
    assert matrix.lines[0].caught == 0
    assert matrix.verdict == verdict


def test_enough_is_five_of_five_or_nine_of_ten() -> None:
    def verdict(hits: int, tries: int) -> str:
        twins = [row(seed=seed) for seed in range(tries)]
        missed = [row(seed=seed, mutant="loser", ran=True) for seed in range(hits, tries)]
        return of(*twins, *missed, *(caught(seed) for seed in range(hits))).verdict

    assert (verdict(5, 5), verdict(4, 5)) == ("PASS", "FAIL")
    assert (verdict(9, 10), verdict(8, 10)) == ("PASS", "FAIL")


def test_finding_in_logs_on_disk_is_timed_at_the_end() -> None:
    without_times = msgspec.structs.replace(caught(), first_s={})
    assert "| 1 of 1 | 5%       | at the end" in text_of(of(row(), without_times))


def test_matrix_has_one_column_per_guarantee() -> None:
    rows = [row(), caught(violated={"lost_write": 3, "phantom": 1})]
    table = text_of(matrix_of([LOSER, DOUBLER], rows))
    head, _, loser, doubler = table.splitlines()
    assert [cell.strip() for cell in head.split("|")[1:-1]] == [
        "mutant", "scenario", "caught", "at least", "first catch", "line ran", "twin passes",
        "duplicate", "lost_write", "phantom",
    ]  # fmt: skip
    assert [cell.strip() for cell in loser.split("|")[1:-1]] == [
        "loser", "s", "1 of 1", "5%", "7.5 s", "1 of 1", "1 of 1", "", "**1**", "1",
    ]  # fmt: skip
    assert "| doubler | s        | -" in doubler


def test_page_shows_caught_and_unplayed_mutants(tmp_path: Path) -> None:
    escaped = row(mutant="<b>loser", verdict="FAIL", violated={"lost_write": 3}, ran=True)
    meant = [msgspec.structs.replace(LOSER, name="<b>loser"), DOUBLER]
    text = write_matrix(tmp_path, matrix_of(meant, [row(), escaped])).read_text()
    assert "&lt;b&gt;loser" in text
    assert '<td class="meant">1 of 1</td>' in text
    assert "7.5 s" in text
    assert "not played" in text
