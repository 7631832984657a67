"""What there is of a run: its verdict, or as much as a damaged or half-written run still says."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from urteil.harness.scenario import RunFacts, Scenario
from urteil.harness.verify.result import FaultResult, Result, Verdict

Record = TypeVar("Record", Result, RunFacts, Scenario)


class NoRun(FileNotFoundError):
    """A folder that has nothing of a run which can be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """`result` is made up where the run has none: UNKNOWN, with what is known otherwise.
    `lacks` says what is missing or damaged, and why."""

    result: Result
    scenario: Scenario | None
    facts: RunFacts | None
    judged: bool
    lacks: list[str] = field(default_factory=list)


def load_run(run_dir: Path) -> Loaded:
    """Load a run's folder as far as it can be read.

    NoRun when it has neither a verdict nor the facts nor the scenario of a run.
    """
    lacks: list[str] = []
    result = _read(run_dir / "result.json", Result, lacks)
    facts = _read(run_dir / "run.json", RunFacts, lacks)
    scenario = _read(run_dir / "scenario.json", Scenario, lacks)
    if result is None and facts is None and scenario is None:
        raise NoRun(f"{run_dir} is no run: {'; '.join(lacks)}")
    return Loaded(
        result=result or _bare(run_dir, facts, scenario),
        scenario=scenario,
        facts=facts,
        judged=result is not None,
        lacks=lacks,
    )


def _read(path: Path, kind: type[Record], lacks: list[str]) -> Record | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        lacks.append(f"{path.name} is missing")
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        lacks.append(f"{path.name} cannot be read: {why}")
    return None


def _bare(run_dir: Path, facts: RunFacts | None, scenario: Scenario | None) -> Result:
    """A result that says only what was played."""
    asked = scenario or Scenario(name="?")
    return Result(
        verdict=Verdict.UNKNOWN,
        reasons=[*(facts.problems if facts else ()), "the run has not been judged"],
        seed=facts.seed if facts else asked.seed,
        scenario=facts.scenario if facts else asked.name,
        target=facts.target if facts else asked.target,
        runtime=facts.runtime if facts else asked.runtime,
        mutant=facts.mutant if facts else asked.mutant,
        command=facts.command if facts else f"urteil run {asked.name} --seed {asked.seed}",
        run=facts.run if facts else "?",
        engine="none",
        versions=facts.versions if facts else {},
        seconds=facts.seconds if facts else {},
        counts={},
        guarantees=[],
        faults=_faults(run_dir),
    )


def _faults(run_dir: Path) -> list[FaultResult]:
    """The faults that the nemesis wrote down, each line as far as it is whole."""
    try:
        lines = (run_dir / "faults.jsonl").read_text(errors="replace").splitlines()
    except OSError:
        return []
    return [fault for line in lines if (fault := _fault(line)) is not None]


def _fault(line: str) -> FaultResult | None:
    try:
        row: dict[str, Any] = json.loads(line)
        return FaultResult(
            fault=str(row["fault"]),
            targets=[str(one) for one in json.loads(row["targets"] or "[]")],
            begin_ns=int(row["begin_ns"]),
            end_ns=int(row["end_ns"] or row["begin_ns"]),
            healed_ns=None if row["healed_ns"] is None else int(row["healed_ns"]),
            proof=str(row["proof"]),
            acted=bool(row["acted"]),
        )
    except (ValueError, KeyError, TypeError):
        return None
