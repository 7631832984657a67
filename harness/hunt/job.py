"""One run of a campaign: the requested job, and the row of its result."""

from __future__ import annotations

from pathlib import Path

import msgspec

from urteil.harness.hunt.shrinking import Anomaly, outcome_of
from urteil.harness.scenario import RunFacts
from urteil.harness.verify.rare_states.counts import load_counts
from urteil.harness.verify.result import GuaranteeResult, Result
from urteil.harness.verify.stored_findings import violated_sub_kinds

_SECOND_NS = 1_000_000_000


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A run to play. `mutant` None is the unchanged broker. `bug` is the published bug whose
    presence or absence the run is to show."""

    scenario: str
    seed: int
    target: str = "urteil"
    mutant: str | None = None
    bug: str | None = None

    @property
    def is_plain(self) -> bool:
        """Whether the run has neither a mutant nor a published bug."""
        return self.mutant is None and self.bug is None

    def arguments(self) -> list[str]:
        """The command line after `urteil`."""
        words = ["run", self.scenario, "--seed", str(self.seed)]
        words += ["--target", self.target] if self.target != "urteil" else []
        return words + (["--mutant", self.mutant] if self.mutant else [])


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A run that was played. `violated` counts findings that are not permitted, by guarantee.
    `first_s` has the seconds from the begin of the load to the first finding of each, and 0 for one
    while clients started; guarantees whose findings have no time are absent. `run` is the folder,
    empty after it was pruned. `refused`: the lab did not begin the run. `shows` are its violations
    by guarantee and sub-kind, `signatures` their signatures (archive.py). `states` has the count of
    each rare state; None if they were not counted."""

    job: Job
    verdict: str
    seconds: float
    at: str
    run: str = ""
    reasons: list[str] = []
    violated: dict[str, int] = {}
    first_s: dict[str, float] = {}
    must_find: dict[str, bool] = {}
    mutant_ran: bool | None = None
    refused: bool = False
    shows: list[str] = []
    signatures: list[str] = []
    states: dict[str, int] | None = None


def row_of(job: Job, result: Result, facts: RunFacts, *, seconds: float, at: str, run: Path) -> Row:
    """The row of a judged run."""
    violated = {g.name: g.violations for g in result.guarantees if g.status == "violated"}
    first = {g.name: _first_s(run, g, facts) for g in result.guarantees if g.name in violated}
    return Row(
        job=job,
        verdict=str(result.verdict),
        seconds=round(seconds, 1),
        at=at,
        run=str(run),
        reasons=[reason[:300] for reason in result.reasons[:5]],
        violated=violated,
        first_s={name: value for name, value in first.items() if value is not None},
        must_find=result.must_find,
        mutant_ran=facts.mutant_ran,
        shows=[anomaly.name for anomaly in outcome_of(run, result, seconds).shows],
        signatures=[
            signature for g in result.guarantees if (signature := _signature(g, facts.run))
        ],
        states=_states(run),
    )


def _states(run: Path) -> dict[str, int] | None:
    """The counts of rare states that the judgement wrote into the run's folder."""
    counts = load_counts(run)
    return None if counts is None else counts.reached


def _signature(guarantee: GuaranteeResult, run: str) -> str:
    """Guarantee and sub-kind, the kinds of faults active at the first violation, and the topic.

    In a standing cluster topics are named after the run; the signature has the name without the
    run.
    """
    first = next((finding for finding in guarantee.findings if finding.permitted is None), None)
    if guarantee.status != "violated" or first is None:
        return ""
    kinds = sorted({fault.split(" ", 1)[0] for fault in first.faults})
    name = Anomaly(guarantee.name, first.sub_kind).name
    topic = (first.topic or "the cluster").removesuffix(f"-{run}")
    return f"{name} under {'+'.join(kinds) or 'no fault'} in {topic}"


def _first_s(run: Path, guarantee_result: GuaranteeResult, facts: RunFacts) -> float | None:
    begins = [phase.begin_ns for phase in facts.phases if phase.name == "before"]
    times = [
        at_ns for at_ns in violated_sub_kinds(run, guarantee_result).values() if at_ns is not None
    ]
    if not begins or not times:
        return None
    return max(0.0, round((min(times) - begins[0]) / _SECOND_NS, 1))
