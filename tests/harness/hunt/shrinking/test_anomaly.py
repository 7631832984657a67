"""Anomalies of a run, and the command that plays the smallest schedule."""

from __future__ import annotations

from pathlib import Path

import pytest

from urteil.harness.hunt.shrinking import Anomaly, NoAnomaly, Rule, anomaly_of, outcome_of
from urteil.harness.hunt.shrinking.shrink_session import Session
from urteil.harness.scenario import RunFacts, save
from urteil.harness.verify.result import Finding, GuaranteeResult, Result, Status, Verdict


def finding(
    name: str, kind: str, at_ns: int | None = None, permitted: str | None = None
) -> Finding:
    return Finding(guarantee=name, sub_kind=kind, sentence="", at_ns=at_ns, permitted=permitted)


def judged(name: str, status: Status, *findings: Finding) -> GuaranteeResult:
    return GuaranteeResult(name=name, status=status, promise="", source="", findings=list(findings))


def result(*guarantees: GuaranteeResult) -> Result:
    return Result(
        verdict=Verdict.FAIL,
        reasons=[],
        seed=1,
        scenario="s",
        target="urteil",
        runtime="process",
        mutant=None,
        command="",
        run="r",
        engine="duckdb",
        versions={},
        seconds={},
        counts={},
        guarantees=list(guarantees),
        faults=[],
    )


RESULT = result(
    judged(
        "lost_write",
        Status.VIOLATED,
        finding("lost_write", "tail", at_ns=900),
        finding("lost_write", "middle", at_ns=700),
        finding("lost_write", "prefix", at_ns=100, permitted="acks=1"),
    ),
    judged("duplicate", Status.VIOLATED, finding("duplicate", "", at_ns=500)),
    judged("hole", Status.VIOLATED, finding("hole", "start")),
    judged("phantom", Status.UNKNOWN, finding("phantom", "", at_ns=1)),
    judged("corrupt", Status.HOLDS),
)


def test_permitted_and_unjudged_findings_are_no_anomalies() -> None:
    outcome = outcome_of(Path("r"), RESULT, 1.0)
    assert list(map(str, outcome.shows)) == [
        "duplicate",
        "hole (start)",
        "lost_write (middle)",
        "lost_write (tail)",
    ]


def test_earliest_anomaly_is_chosen_unless_another_is_requested() -> None:
    assert anomaly_of(Path("r"), RESULT) == Anomaly("duplicate")
    assert anomaly_of(Path("r"), RESULT, guarantee="lost_write") == Anomaly("lost_write", "middle")
    assert anomaly_of(Path("r"), RESULT, sub_kind="tail") == Anomaly("lost_write", "tail")
    assert anomaly_of(Path("r"), RESULT, guarantee="hole") == Anomaly("hole", "start")


@pytest.mark.parametrize("name", ["phantom", "corrupt", "nothing"])
def test_absent_anomaly_cannot_be_shrunk(name: str) -> None:
    with pytest.raises(NoAnomaly, match=f"the run shows duplicate, .* not {name}"):
        anomaly_of(Path("r"), RESULT, guarantee=name)
    with pytest.raises(NoAnomaly, match="shows no violation: nothing to shrink"):
        anomaly_of(Path("r"), result(judged("corrupt", Status.HOLDS)))


@pytest.mark.parametrize(
    ("command", "again"),
    [
        (
            "urteil run chaos --seed 3 --duration-s 20 --mutant m --engine duckdb --brokers 5",
            "urteil run chaos --seed 3 --mutant m --brokers 5",
        ),
        ("pytest -k test --urteil-seed 3", "urteil run chaos --seed 3 --mutant m"),
    ],
)
def test_the_command_plays_the_smallest_schedule(tmp_path: Path, command: str, again: str) -> None:
    facts = RunFacts(
        run="r", seed=3, scenario="chaos", target="urteil", runtime="process", boot_id="",
        command=command, mutant="m",
    )  # fmt: skip
    save(tmp_path / "run.json", facts)
    session = Session(
        run_dir=tmp_path,
        folder=tmp_path / "shrink",
        anomaly=Anomaly("duplicate"),
        rule=Rule(),
        deadline=0.0,
    )
    assert session.command() == f"{again} --schedule {tmp_path}/shrink/smallest.json"
