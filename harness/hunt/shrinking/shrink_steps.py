"""The steps of shrinking: fewer faults, shorter faults, less load.

Each step plays a smaller schedule. The step is accepted when k of n tries show the anomaly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from urteil.harness.delta_debugging import halve, minimise
from urteil.harness.hunt.shrinking.anomaly import Anomaly
from urteil.harness.hunt.shrinking.schedule_reduction import (
    LEAST_FAULT_S,
    LEAST_RATE,
    fault_seconds,
    keep_faults,
    with_fault_duration,
)
from urteil.harness.hunt.shrinking.tries import BudgetSpent, Tally, Tries
from urteil.harness.schedule import Schedule

_replace = msgspec.structs.replace


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One schedule that was tried. `kept`: shrinking continued from it."""

    what: str
    faults: int
    fault_s: float
    load_s: float
    rate_records_per_s: float
    producers: int
    hits: int
    tries: int
    kept: bool
    others: tuple[Anomaly, ...] = ()
    seconds: float = 0.0


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The result of shrinking.

    `ended`: `smallest` (every remaining fault is needed), `budget` (time was up; `schedule` is the
    best so far), `not reproduced`, or `control` (the run violates the guarantee without any fault).
    `hits` of `tries` runs of `schedule` showed the anomaly; `run` is the newest of them.
    """

    anomaly: Anomaly
    ended: str
    schedule: Schedule
    hits: int
    tries: int
    steps: tuple[Step, ...]
    run: str = ""


@dataclass
class _Shrinking:
    tries: Tries
    on_step: Callable[[Step], None]
    best: Schedule
    steps: list[Step] = field(default_factory=list)

    def try_change(self, change: str, schedule: Schedule) -> bool:
        """Try a changed schedule. An accepted one becomes the best; returns whether it did."""
        is_accepted, tally = self.tries.decide(schedule)
        self.record_step(change, schedule, tally, is_accepted)
        if is_accepted:
            self.best = schedule
        return is_accepted

    def record_step(self, change: str, schedule: Schedule, tally: Tally, is_accepted: bool) -> None:
        step = Step(
            what=change,
            faults=len(schedule.faults),
            fault_s=fault_seconds(schedule),
            load_s=schedule.duration_s or 0.0,
            rate_records_per_s=schedule.rate_records_per_s or 0.0,
            producers=schedule.producers or 0,
            hits=tally.hits,
            tries=tally.tries,
            kept=is_accepted,
            others=tally.others,
            seconds=tally.seconds,
        )
        self.steps.append(step)
        self.on_step(step)

    def passes_without_faults(self, change: str, schedule: Schedule) -> bool:
        """Whether one run without faults does not violate the guarantee of the anomaly."""
        bare = _replace(schedule, faults=())
        self.tries.repeat(bare, 1)
        tally = self.tries.tally(bare, 1)
        name = self.tries.anomaly.guarantee
        is_clean = not tally.hits and all(other.guarantee != name for other in tally.others)
        self.record_step(change, bare, tally, is_accepted=False)
        return is_clean

    def report(self, ended: str) -> Report:
        tally = self.tries.tally(self.best)
        return Report(
            anomaly=self.tries.anomaly,
            ended=ended,
            schedule=self.best,
            hits=tally.hits,
            tries=tally.tries,
            steps=tuple(self.steps),
            run=tally.run,
        )


def shrink(
    schedule: Schedule,
    tries: Tries,
    *,
    until_s: float | None = None,
    confirm: int = 5,
    on_step: Callable[[Step], None] = lambda _step: None,
) -> Report:
    """The smallest schedule that still shows the anomaly of `tries`.

    `until_s` is the time of the anomaly after the begin of the load: faults that begin later are
    removed first. The smallest schedule is played again, until it has `confirm` tries.
    Deterministic: the same outcomes lead to the same steps.
    """
    complete = keep_faults(schedule, range(len(schedule.faults)))
    run = _Shrinking(tries, on_step, complete)
    try:
        if not run.passes_without_faults("control", complete):
            return run.report("control")
        if not run.try_change("as it was", complete):
            return run.report("not reproduced")
        _remove_faults(run, complete, until_s)
        _shorten_faults(run)
        _reduce_load(run)
        if not run.passes_without_faults("control", run.best):
            return run.report("control")
        tries.repeat(run.best, confirm)
        return run.report("smallest")
    except BudgetSpent:
        return run.report("budget")


def _remove_faults(run: _Shrinking, complete: Schedule, until_s: float | None) -> None:
    indices = tuple(range(len(complete.faults)))
    if until_s is not None:
        early = tuple(n for n in indices if (complete.faults[n].at_s or 0.0) <= until_s)
        if 0 < len(early) < len(indices) and run.try_change(
            "until it showed", keep_faults(complete, early)
        ):
            indices = early
    minimise(
        indices,
        lambda subset: run.try_change(
            _fault_names(complete, subset), keep_faults(complete, subset)
        ),
    )


def _shorten_faults(run: _Shrinking) -> None:
    for n in range(len(run.best.faults)):
        name = run.best.faults[n].fault

        def try_duration(seconds: float, n: int = n, name: str = name) -> bool:
            return run.try_change(
                f"{name} for {seconds:.1f} s", with_fault_duration(run.best, n, seconds)
            )

        halve(run.best.faults[n].duration_s, LEAST_FAULT_S, try_duration)


def _reduce_load(run: _Shrinking) -> None:
    if (run.best.producers or 1) > 1:
        run.try_change("one producer", _replace(run.best, producers=1))

    def try_rate(rate: float) -> bool:
        return run.try_change(f"{rate:g} records/s", _replace(run.best, rate_records_per_s=rate))

    halve(run.best.rate_records_per_s or 0.0, LEAST_RATE, try_rate)


def _fault_names(schedule: Schedule, indices: tuple[int, ...]) -> str:
    return "faults " + ", ".join(f"{n + 1} {schedule.faults[n].fault}" for n in indices)
