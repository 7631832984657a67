"""Shrinking against a simulated cluster: smallest, repeatable, never another anomaly, k of n."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.harness.hunt.shrinking.oracle import LOST, OTHER, STRANGE, Paper, schedule, tries
from urteil.harness.hunt.shrinking import Outcome, Report, Rule, shrink
from urteil.harness.hunt.shrinking.tries import key_of
from urteil.harness.schedule import Schedule

NEEDS = st.dictionaries(st.integers(0, 8), st.sampled_from([0.4, 1.5, 3.0]), min_size=1)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An empty folder a time it is asked for."""
    return map(lambda n: tmp_path_factory.mktemp(f"tries{n}"), iter(range(10_000)))


def choices(reduced: Schedule) -> list[str]:
    return [fault.choice for fault in reduced.faults]


@given(needs=NEEDS)
@settings(max_examples=25, deadline=None)
def test_shrinking_keeps_needed_faults_only(
    folders: Iterator[Path], needs: dict[int, float]
) -> None:
    report = shrink(schedule(9), tries(Paper(needs, rate=35), next(folders)))
    assert report.ended == "smallest"
    assert choices(report.schedule) == [f"f{n}" for n in sorted(needs)]
    for fault in report.schedule.faults:
        least = needs[int(fault.choice[1:])]
        assert least <= fault.duration_s
        assert fault.duration_s / 2 < max(least, 0.5)
    assert report.schedule.producers == 1
    assert report.schedule.rate_records_per_s == 40
    assert (report.schedule.duration_s or 0) < 100


@given(
    needs=NEEDS,
    chance=st.sampled_from([0.5, 0.8, 1.0]),
    rule=st.sampled_from([(1, 2), (2, 3), (3, 3)]),
)
@settings(max_examples=25, deadline=None)
def test_shrink_step_needs_k_of_n_hits(
    folders: Iterator[Path], needs: dict[int, float], chance: float, rule: tuple[int, int]
) -> None:
    hits, of = rule
    paper = Paper(needs, chance=chance)
    report = shrink(schedule(9), tries(paper, next(folders), hits=hits, of=of))
    for step in report.steps:
        if step.kept:
            assert step.hits >= hits
            assert step.tries <= of
        elif step.what != "control":
            assert step.hits < hits
    if report.ended == "smallest":
        assert set(choices(report.schedule)) >= {f"f{n}" for n in needs}
    else:
        assert report.ended == "not reproduced"


@given(needs=NEEDS)
@settings(max_examples=20, deadline=None)
def test_another_anomaly_is_never_accepted(
    folders: Iterator[Path], needs: dict[int, float]
) -> None:
    paper = Paper(needs, elsewhere=(OTHER, STRANGE))
    report = shrink(schedule(9), tries(paper, next(folders)))
    assert choices(report.schedule) == [f"f{n}" for n in sorted(needs)]
    strange = [step for step in report.steps if step.others]
    assert not any(step.kept for step in strange)
    assert all(step.others == (STRANGE, OTHER) for step in strange)


def test_unreproducible_anomaly_is_reported(tmp_path: Path) -> None:
    report = shrink(schedule(3), tries(Paper({}), tmp_path, hits=2, of=3))
    assert report.ended == "not reproduced"
    assert (report.hits, report.tries) == (0, 2)


@pytest.mark.parametrize("anomaly", [LOST, OTHER])
def test_control_that_violates_the_guarantee_ends_shrinking(
    tmp_path: Path, anomaly: object
) -> None:
    paper = Paper({1: 1.0}, always=(anomaly,))  # type: ignore[arg-type]
    report = shrink(schedule(9), tries(paper, tmp_path))
    assert report.ended == "control"
    assert len(paper.played) == 1


def test_control_that_violates_another_guarantee_is_no_reason_to_end(tmp_path: Path) -> None:
    report = shrink(schedule(9), tries(Paper({1: 1.0}, always=(STRANGE,)), tmp_path))
    assert (report.ended, choices(report.schedule)) == ("smallest", ["f1"])


def test_control_is_also_played_under_the_last_load(tmp_path: Path) -> None:
    paper = Paper({2: 1.0})
    report = shrink(schedule(5), tries(paper, tmp_path))
    bare = [scenario for scenario in paper.played if not scenario.faults]
    assert len(bare) == 2
    assert bare[1].rate_records_per_s == report.schedule.rate_records_per_s


def test_smallest_schedule_is_confirmed_as_often_as_requested(tmp_path: Path) -> None:
    report = shrink(schedule(4), tries(Paper({1: 1.0}, chance=0.9), tmp_path), confirm=20)
    assert report.tries == 20
    assert 12 <= report.hits <= 20


@given(cuts=st.lists(st.integers(1, 6), max_size=8), needs=NEEDS)
@settings(max_examples=15, deadline=None)
def test_interrupted_shrinking_continues_without_repeated_tries(
    folders: Iterator[Path], cuts: list[int], needs: dict[int, float]
) -> None:
    def report_of(folder: Path, cuts: list[int]) -> tuple[Report, list[str]]:
        paper = Paper(needs, chance=0.8)
        for cut in [*cuts, 10_000]:
            left = iter(range(cut))

            def play(asked: Schedule, left: Iterator[int] = left) -> Outcome:
                if next(left, None) is None:
                    raise KeyboardInterrupt
                return paper(asked)

            try:
                shrunk = shrink(schedule(9), tries(play, folder, hits=2, of=3))
            except KeyboardInterrupt:
                continue
        return shrunk, [key_of(scenario) for scenario in paper.played]

    assert report_of(next(folders), cuts) == report_of(next(folders), [])


def test_cut_line_damages_no_other_line(tmp_path: Path) -> None:
    def counted(runs: int) -> int:
        paper = Paper({1: 1.0})
        asked = tries(paper, tmp_path)
        asked.repeat(schedule(3), runs)
        return len(paper.played)

    assert counted(2) == 2
    (ledger,) = tmp_path.glob("*.jsonl")
    ledger.write_bytes(ledger.read_bytes()[:-9])
    assert counted(2) == 1
    assert counted(2) == 0


def test_spent_budget_returns_the_best_schedule(tmp_path: Path) -> None:
    report = shrink(schedule(4), tries(Paper({1: 1.0}), tmp_path, deadline=0.0))
    assert (report.ended, report.tries) == ("budget", 0)
    assert choices(report.schedule) == ["f0", "f1", "f2", "f3"]


def test_cut_line_does_not_count_as_a_try(tmp_path: Path) -> None:
    first = Paper({1: 1.0})
    shrink(schedule(4), tries(first, tmp_path))
    ledger = tmp_path / "tries.jsonl"
    lines = ledger.read_bytes().splitlines(keepends=True)
    ledger.write_bytes(b"".join(lines[:-1]) + lines[-1][:20])
    again = Paper({1: 1.0})
    report = shrink(schedule(4), tries(again, tmp_path))
    assert (len(again.played), report.ended) == (1, "smallest")
    assert len(lines) == len(first.played)
    assert json.loads(lines[0])["outcome"]["run"] == "run-1"


def test_faults_after_the_first_finding_are_removed_first(tmp_path: Path) -> None:
    paper = Paper({0: 1.0})
    report = shrink(schedule(9), tries(paper, tmp_path), until_s=16.0)
    assert report.steps[2].what == "until it showed"
    assert report.steps[2].faults == 2
    assert choices(report.schedule) == ["f0"]


def test_impossible_rule_is_rejected() -> None:
    with pytest.raises(ValueError, match="3 of 2 tries"):
        Rule(hits=3, tries=2)
