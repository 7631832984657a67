"""The choice of a night's next run: by weight, and by the time since it was last played."""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random

import msgspec

from urteil.chaos.faults import FAULTS
from urteil.harness.hunt.job import Job
from urteil.harness.hunt.matrix import ExpectedCatch
from urteil.harness.known_bugs import KnownBug
from urteil.harness.run.playable import NotPlayable, fit_to_releases, missing_in_runtime
from urteil.harness.scenario import Scenario
from urteil.harness.targets.external import PREFIX, ExternalFile, fit_scenario, load_external

WEIGHTS = {"everything": 8.0, "schedule": 4.0, "moments": 1.0}
"""Weights by what a new seed draws: another scenario, another schedule, or only other moments."""
MIXED_IN = 10.0
"""A mutant that is to validate a night is played before the night ends, however short it is."""
MUTANTS = "mutants"
BUGS = "bugs"
AT = "%Y-%m-%d %H:%M:%S"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A run that a night may play. A candidate with twice the weight is played about twice as
    often."""

    scenario: str
    target: str = "urteil"
    mutant: str | None = None
    bug: str | None = None
    weight: float = 1.0

    def job(self, seed: int) -> Job:
        return Job(
            scenario=self.scenario,
            seed=seed,
            target=self.target,
            mutant=self.mutant,
            bug=self.bug,
        )


def candidates_of(
    scenarios: Sequence[Scenario],
    targets: Sequence[str],
    mutants: Iterable[ExpectedCatch],
    weights: Mapping[str, float],
    *,
    seed: int,
    mixed_in: Container[str] = (),
    bugs: Iterable[KnownBug] = (),
    runtime: str = "process",
) -> list[Candidate]:
    """All playable runs with a positive weight, in an order drawn by the seed.

    `weights` multiply: by the name of a scenario, of a target, of a mutant or bug, or of all
    `mutants` or `bugs`.
    """
    candidates = [
        Candidate(
            scenario=scenario.name,
            target=target,
            weight=WEIGHTS[drawn_part(scenario)] * _product(weights, scenario.name, target),
        )
        for target in targets
        for scenario in scenarios
        if not unsupported_reason(scenario, target, runtime)
    ]
    candidates += [
        Candidate(
            scenario=mutant.scenario,
            mutant=mutant.name,
            weight=(MIXED_IN if mutant.name in mixed_in else 1.0)
            * _product(weights, mutant.scenario, "urteil", mutant.name, MUTANTS),
        )
        for mutant in mutants
        if "urteil" in targets
    ]
    candidates += [
        Candidate(
            scenario=bug.scenario,
            target=bug.broken_target,
            bug=bug.name,
            weight=_product(weights, bug.scenario, bug.name, BUGS),
        )
        for bug in bugs
    ]
    Random(seed).shuffle(candidates)
    return [candidate for candidate in candidates if candidate.weight > 0]


def drawn_part(scenario: Scenario) -> str:
    """What a new seed of a scenario draws, a key of WEIGHTS."""
    if scenario.bounds is not None:
        return "everything"
    return "moments" if scenario.draw is None else "schedule"


def next_of(
    candidates: Iterable[Candidate],
    last_played: Callable[[Candidate], str],
    plays: Callable[[Candidate], int],
    now_s: float,
) -> Candidate | None:
    """The candidate that is due most: weight times the seconds since it was last played. Candidates
    never played (`last_played` is empty) come first, the heavier before the lighter. Ties go to the
    candidate played least often for its weight. `now_s` is wall clock."""

    def order(candidate: Candidate) -> tuple[bool, float, float]:
        at = last_played(candidate)
        age_s = max(0.0, now_s - seconds_of(at)) if at else 1.0
        return not at, candidate.weight * age_s, -plays(candidate) / candidate.weight

    return max(candidates, key=order, default=None)


def seconds_of(at: str) -> float:
    """The wall clock of a row's `at`."""
    return time.mktime(time.strptime(at, AT))


def unsupported_reason(scenario: Scenario, target: str, runtime: str = "process") -> str:
    """The reason for which a scenario cannot be played on a target, with this runtime or at an
    external cluster; empty if it can. Raises ValueError as `load_external` does."""
    if scenario.runtime != "process":
        return f"{scenario.name} needs --runtime {scenario.runtime}"
    if target.startswith(PREFIX):
        return _unsupported_there(scenario, target)
    reasons = [
        FAULTS[fault.fault].unsupported_reason(
            runtime=runtime, target=target, selector=fault.target, options=fault.options
        )
        for fault in scenario.faults
    ]
    reasons.append(missing_in_runtime(scenario, target, runtime))
    return next(filter(None, reasons), "") or _unfit_reason(scenario, target)


PLANES = {"ZooKeeper": "kafka", "KRaft": "kafka:4.4.0"}
"""Metadata plane to a target that has it."""


def planes_of(scenario: Scenario) -> list[str]:
    """The metadata planes on which the lab can play a scenario, by the declarations of its faults
    and settings."""
    as_processes = msgspec.structs.replace(scenario, runtime="process")
    return [
        plane for plane, target in PLANES.items() if not unsupported_reason(as_processes, target)
    ]


def _unfit_reason(scenario: Scenario, target: str) -> str:
    """The reason for which a release of the target cannot play a scenario."""
    try:
        fit_to_releases(msgspec.structs.replace(scenario, target=target))
    except NotPlayable as reason:
        return str(reason)
    return ""


def _unsupported_there(scenario: Scenario, target: str) -> str:
    """The reason at the begin of the night: later changes of the file have no effect."""
    file = _external(target)
    try:
        fit_scenario(scenario, file)
    except ValueError as error:
        return str(error)
    return ""


@cache
def _external(target: str) -> ExternalFile:
    return load_external(Path(target.removeprefix(PREFIX)))


def _product(weights: Mapping[str, float], *names: str) -> float:
    product = 1.0
    for name in names:
        product *= weights.get(name, 1.0)
    return product
