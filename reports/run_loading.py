"""Loading of a run's result, facts and scenario, also from a damaged or incomplete folder."""

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
    """The folder holds no readable file of a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedRun:
    """The readable part of a run. Without `result.json`, `result` is UNKNOWN and built from the
    other files. `lacks` names the missing and damaged files, with the reason."""

    result: Result
    scenario: Scenario | None
    facts: RunFacts | None
    judged: bool
    lacks: list[str] = field(default_factory=list)


def load_run(run_dir: Path) -> LoadedRun:
    """Load the readable part of a run's folder. Raises NoRun if none of result.json, run.json and
    scenario.json can be read."""
    lacks: list[str] = []
    result = _read(run_dir / "result.json", Result, lacks)
    facts = _read(run_dir / "run.json", RunFacts, lacks)
    scenario = _read(run_dir / "scenario.json", Scenario, lacks)
    if result is None and facts is None and scenario is None:
        raise NoRun(f"{run_dir} is no run: {'; '.join(lacks)}")
    return LoadedRun(
        result=result or _unjudged_result(run_dir, facts, scenario),
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


def _unjudged_result(run_dir: Path, facts: RunFacts | None, scenario: Scenario | None) -> Result:
    """A result without a judgement: the scenario, its faults and the facts of the run."""
    played = scenario or Scenario(name="?")
    return Result(
        verdict=Verdict.UNKNOWN,
        reasons=[*(facts.problems if facts else ()), "the run has not been judged"],
        seed=facts.seed if facts else played.seed,
        scenario=facts.scenario if facts else played.name,
        target=facts.target if facts else played.target,
        runtime=facts.runtime if facts else played.runtime,
        mutant=facts.mutant if facts else played.mutant,
        command=facts.command if facts else f"urteil run {played.name} --seed {played.seed}",
        run=facts.run if facts else "?",
        engine="none",
        versions=facts.versions if facts else {},
        seconds=facts.seconds if facts else {},
        counts={},
        guarantees=[],
        faults=_faults(run_dir),
    )


def _faults(run_dir: Path) -> list[FaultResult]:
    """The faults of faults.jsonl; lines that cannot be parsed are skipped."""
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
            targets=[str(target) for target in json.loads(row["targets"] or "[]")],
            begin_ns=int(row["begin_ns"]),
            end_ns=int(row["end_ns"] or row["begin_ns"]),
            healed_ns=None if row["healed_ns"] is None else int(row["healed_ns"]),
            proof=str(row["proof"]),
            acted=bool(row["acted"]),
        )
    except (ValueError, KeyError, TypeError):
        return None
