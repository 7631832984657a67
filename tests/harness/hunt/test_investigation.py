"""A failing seed is replayed, shrunk, and recognised when it fails again."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.harness.hunt.rows import row
from tests.harness.hunt.test_night import CALM, KILL, LOSER
from urteil.cli.shrink import shrink as shrink_command
from urteil.harness.hunt import Job, Row
from urteil.harness.hunt.archive import Archive
from urteil.harness.hunt.investigated_failure import rule_for
from urteil.harness.hunt.investigation import Investigator, OutOfTime
from urteil.harness.hunt.night import Night
from urteil.harness.hunt.run_process import Shrinking
from urteil.harness.hunt.shrinking import Anomaly, Report, Rule, Step
from urteil.harness.schedule import Entry, Schedule

LOST = "lost_write/tail under crash in urteil"
STALE = "stale_append under crash in urteil"
TORN = "torn_txn under crash in urteil"
SMALLEST = Schedule(faults=(Entry(fault="crash", target="leader", duration_s=1.5),))
SEED_7 = Job(scenario="kill", seed=7)


def step(*others: Anomaly) -> Step:
    return Step(what="as it was", faults=1, fault_s=1.5, load_s=9.0, rate_records_per_s=20.0,
                producers=1, hits=2, tries=2, kept=True, others=others)  # fmt: skip


@dataclass
class Lab:
    """Runs of `kill` fail with all three signatures; `shows` of its reruns show them again."""

    folder: Path
    shows: int = 10
    ended: str = "smallest"
    played: list[Job] = field(default_factory=list)
    shrunk: list[Shrinking] = field(default_factory=list)

    def play(self, job: Job, out: Path) -> Row:
        self.played.append(job)
        run = out / f"{len(self.played)}-{job.scenario}"
        run.mkdir(parents=True)
        at = f"2026-01-02 03:{len(self.played):02}:00"
        if job.scenario != "kill" or ("failures" in out.parts and not self.left()):
            return replace(row(job.scenario, job.seed, target=job.target, run=run), at=at)
        counts = {"torn_txn": 1, "lost_write": 2, "stale_append": 1}
        return replace(
            row("kill", job.seed, "FAIL", target=job.target, mutant=job.mutant, run=run,
                violated=counts, ran=True),
            at=at, signatures=[TORN, LOST, STALE],
            shows=["lost_write/prefix", "lost_write/tail", "stale_append", "torn_txn"],
            first_s={"lost_write": 3.0, "stale_append": 4.0},
        )  # fmt: skip

    def left(self) -> bool:
        self.shows -= 1
        return self.shows >= 0

    def shrink(self, asked: Shrinking) -> Report:
        self.shrunk.append(asked)
        tries = asked.into / "tries"
        for name in ("first", "best"):
            (tries / name).mkdir(parents=True, exist_ok=True)
        anomaly = Anomaly(asked.guarantee, asked.sub_kind)
        return Report(anomaly=anomaly, ended=self.ended, schedule=SMALLEST, hits=4, tries=5,
                      steps=(step(Anomaly("stale_append")),), run=str(tries / "best"))  # fmt: skip

    def night(self, **more: object) -> Night:
        inspector = Investigator(
            folder=self.folder / "failures", play=self.play, shrink=self.shrink
        )
        given = {"scenarios": [CALM, KILL], "mutants": [], "targets": ["urteil"], **more}
        return Night(
            folder=self.folder,
            first_seed=7,
            play=self.play,
            inspector=inspector,
            history=Archive(self.folder / "history.db"),
            **given,
        )  # type: ignore[arg-type]


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


def fail(night: Night, job: Job) -> Row:
    played = night.play(job, night.folder / "runs")
    night.ledger.add(played)
    night._remember(played)
    night._investigate(played, time.monotonic() + 3600)
    return played


def test_failing_seed_is_replayed_ten_times_and_shrunk(lab: Lab) -> None:
    lab.shows = 9
    night = lab.night()
    fail(night, SEED_7)
    assert lab.played == [SEED_7] * 11
    first, second = lab.shrunk
    assert (first.guarantee, first.sub_kind) == ("lost_write", "tail"), "what was found first"
    assert second.guarantee == "torn_txn", "stale_append is what the smallest schedule shows too"
    known = night.history and night.history.failure(STALE, SEED_7)
    assert known
    assert (known.hits, known.tries, known.ended) == (9, 10, "smallest")
    assert known.shortest == "crash leader for 1.5 s: 4 of 5"
    assert [path.name for path in first.into.glob("tries/*")] == ["best"]
    table = (lab.folder / "table.md").read_text()
    assert "9 of 10 (at least 61%)" in table.partition("## Failures")[2]


def test_investigated_failure_is_not_shrunk_again(lab: Lab) -> None:
    fail(lab.night(), SEED_7)
    played, shrunk = len(lab.played), len(lab.shrunk)
    rates: list[str] = []
    again = lab.night(
        on_known_signature=lambda known: rates.append(f"{known.failure and known.failure.rate}")
    )
    fail(again, Job(scenario="kill", seed=8))
    assert (len(lab.played), len(lab.shrunk)) == (played + 1, shrunk)
    assert rates == ["10 of 10 (at least 74%)"] * 3
    assert [count for _, count in again.failures()] == [2, 2, 2]


def test_another_target_or_mutant_is_another_failure(lab: Lab) -> None:
    fail(lab.night(), SEED_7)
    for job in (replace(SEED_7, target="kafka"), replace(SEED_7, mutant="loser")):
        shrunk, lab.shows = len(lab.shrunk), 10
        fail(lab.night(mutants=[LOSER], mixed_in=frozenset({"loser"})), job)
        assert len(lab.shrunk) == shrunk + 2


def test_mutant_of_the_matrix_is_not_investigated(lab: Lab) -> None:
    fail(lab.night(mutants=[LOSER]), replace(SEED_7, mutant="loser"))
    assert len(lab.played) == 1


def test_unreproducible_failure_is_not_shrunk(lab: Lab) -> None:
    lab.shows = 0
    night = lab.night()
    fail(night, SEED_7)
    assert lab.shrunk == []
    assert {investigation.shortest for investigation, _ in night.failures()} == {
        "not shown again in 10 runs"
    }


def test_interrupted_investigation_continues_in_the_next_call(lab: Lab) -> None:
    night = lab.night()
    failed = night.play(SEED_7, lab.folder / "runs")
    night.ledger.add(failed)
    assert night.inspector
    with pytest.raises(OutOfTime):
        night.inspector.investigate(failed, [LOST], time.monotonic() + failed.seconds - 1)
    assert lab.played == [SEED_7], "nothing begins that would not end"
    again = lab.night(scenarios=[])
    again.hunt(time.monotonic() + 3600)
    assert lab.played == [SEED_7] * 11
    assert [investigation.tries for investigation, _ in again.failures()] == [10, 10, 10]
    lab.night(scenarios=[]).hunt(time.monotonic() + 3600)
    assert len(lab.played) == 11


def test_reruns_that_were_played_count_after_a_kill(lab: Lab) -> None:
    night = lab.night()
    failed = night.play(SEED_7, lab.folder / "runs")
    part = Investigator(folder=lab.folder / "failures", play=lab.play, shrink=lab.shrink, reruns=4)
    part.investigate(failed, [LOST], time.monotonic() + 3600)
    assert night.inspector
    night.inspector.investigate(failed, [LOST], time.monotonic() + 3600)
    assert len(lab.played) == 11


def test_shrinking_cut_by_the_end_of_the_night_is_repeated(lab: Lab) -> None:
    lab.ended = "budget"
    night = lab.night()
    failed = night.play(SEED_7, lab.folder / "runs")
    assert night.inspector
    with pytest.raises(OutOfTime):
        night.inspector.investigate(failed, [LOST], time.monotonic() + 1000)
    (investigation,) = night.inspector.investigate(failed, [LOST], time.monotonic() + 3600)
    assert investigation.shortest == "crash leader for 1.5 s: 4 of 5 (budget)"


def test_uncaught_mutant_makes_the_night_unknown(lab: Lab) -> None:
    night = lab.night(mutants=[LOSER], mixed_in=frozenset({"loser"}), scenarios=[CALM])
    assert night.verdict() == "UNKNOWN", "nothing was played"
    night.ledger.add(row("calm", 7))
    assert night.verdict() == "PASS"
    night.ledger.add(row("kill", 7, mutant="loser", ran=True))
    assert night.uncaught_mutants() == ["loser"]
    assert night.verdict() == "UNKNOWN"
    night.ledger.add(row("kill", 8, "FAIL", mutant="loser", ran=True, violated={"lost_write": 1}))
    assert night.verdict() == "PASS"


@pytest.mark.parametrize(
    ("hits", "tries", "rule"),
    [
        (10, 10, Rule(hits=2, tries=3)),
        (6, 10, Rule(hits=2, tries=3)),
        (5, 10, Rule(hits=1, tries=5)),
        (3, 10, Rule(hits=1, tries=9)),
        (1, 10, Rule(hits=1, tries=10)),
        (0, 0, Rule(hits=2, tries=3)),
    ],
)
def test_rare_failures_get_more_tries(hits: int, tries: int, rule: Rule) -> None:
    assert rule_for(hits, tries) == rule


def test_shrinking_is_an_existing_command(tmp_path: Path) -> None:
    asked = Shrinking(run=tmp_path, guarantee="lost_write", sub_kind="", rule=Rule(),
                      into=tmp_path, seconds=90.0)  # fmt: skip
    context = shrink_command.make_context("shrink", asked.arguments()[1:])
    assert (context.params["sub_kind"], context.params["budget"]) == ("", 1.5)
