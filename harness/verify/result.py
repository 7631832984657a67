"""The verdict of a run: `result.json`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

from urteil.harness.stopwatch import Spent


class Verdict(StrEnum):
    PASS = "PASS"
    FAIL = "FAIL"
    UNKNOWN = "UNKNOWN"


class Status(StrEnum):
    """The judgement of one guarantee in one run."""

    HOLDS = "holds"
    VIOLATED = "violated"
    PERMITTED = "permitted"
    UNKNOWN = "unknown"
    NOT_JUDGED = "not judged"


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One anomaly with its records. `permitted` carries the reason, or None for a violation.

    `records` are rows of evidence (value_id, topic, partition, offset, leader_epoch, client ...);
    `faults` are the names of the faults active between the record's invocation and its completion.
    """

    guarantee: str
    sub_kind: str = ""
    sentence: str
    permitted: str | None = None
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    at_ns: int | None = None
    records: list[dict[str, Any]] = []
    faults: list[str] = []


class GuaranteeResult(msgspec.Struct, frozen=True, kw_only=True):
    """The judgement of one guarantee. `opportunities` counts the cases that could have violated it.

    `findings` holds the first hundred; `violations` and `permitted` count all.
    """

    name: str
    status: Status
    promise: str
    source: str
    opportunities: int = 0
    violations: int = 0
    permitted: int = 0
    reason: str = ""
    findings: list[Finding] = []


class FaultResult(msgspec.Struct, frozen=True, kw_only=True):
    """One injected fault, with the proof that it acted, and its impact in seconds."""

    fault: str
    targets: list[str]
    begin_ns: int
    end_ns: int
    healed_ns: int | None
    proof: str
    acted: bool
    unavailable_s: float | None = None
    recovery_s: float | None = None


class Result(msgspec.Struct, kw_only=True):
    """The output of `urteil run --json`. `reasons` explain why the verdict is not PASS, and
    `engine_reason` the choice of the engine. `phases` has the time of each phase of the run."""

    verdict: Verdict
    reasons: list[str]
    seed: int
    scenario: str
    target: str
    runtime: str
    mutant: str | None
    command: str
    run: str
    engine: str
    versions: dict[str, str]
    seconds: dict[str, float]
    counts: dict[str, int]
    guarantees: list[GuaranteeResult]
    faults: list[FaultResult]
    canary: dict[str, str] = {}
    must_find: dict[str, bool] = {}
    engine_reason: str = ""
    phases: list[Spent] = []


def load_result(run_dir: Path) -> Result:
    """The verdict of the run in `run_dir`."""
    return msgspec.json.decode((run_dir / "result.json").read_bytes(), type=Result)


def add_phases(run_dir: Path, phases: list[Spent]) -> None:
    """Write the times of later phases into a run's `result.json`. They replace those of an earlier
    report."""
    from urteil.harness.scenario import save

    result = load_result(run_dir)
    names = {phase.phase for phase in phases}
    result.phases = [phase for phase in result.phases if phase.phase not in names] + phases
    result.seconds |= {phase.phase: phase.seconds for phase in phases}
    save(run_dir / "result.json", result)
