"""The anomalies of a run, by guarantee and sub-kind, and the choice of the one to reproduce."""

from __future__ import annotations

from pathlib import Path

import msgspec

from urteil.harness.verify.result import Result
from urteil.harness.verify.stored_findings import violated_sub_kinds

NEVER_NS = 1 << 62


class NoAnomaly(ValueError):
    """The run does not show the anomaly to shrink. The message lists what it shows."""


class Anomaly(msgspec.Struct, frozen=True, order=True):
    """One kind of violation. Another sub-kind is another anomaly: it may have another cause."""

    guarantee: str
    sub_kind: str = ""

    @property
    def name(self) -> str:
        """The form of rows and signatures of campaigns."""
        return "/".join(filter(None, (self.guarantee, self.sub_kind)))

    def __str__(self) -> str:
        return f"{self.guarantee} ({self.sub_kind})" if self.sub_kind else self.guarantee


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """One run: folder, verdict, anomalies, seconds."""

    run: str
    verdict: str
    shows: tuple[Anomaly, ...] = ()
    seconds: float = 0.0


def outcome_of(run_dir: Path, result: Result, seconds: float) -> Outcome:
    """The outcome of a judged run."""
    return Outcome(
        run=str(run_dir),
        verdict=str(result.verdict),
        shows=tuple(sorted({anomaly for anomaly, _ in _shown_anomalies(run_dir, result)})),
        seconds=round(seconds, 1),
    )


def anomaly_of(
    run_dir: Path, result: Result, *, guarantee: str | None = None, sub_kind: str | None = None
) -> Anomaly:
    """The requested anomaly of a run, or the one with the earliest finding.

    Raises NoAnomaly when the run does not show it.
    """
    anomalies = _shown_anomalies(run_dir, result)
    matching = [
        (anomaly, at_ns)
        for anomaly, at_ns in anomalies
        if guarantee in (None, anomaly.guarantee) and sub_kind in (None, anomaly.sub_kind)
    ]
    if not matching:
        names = ", ".join(sorted({str(anomaly) for anomaly, _ in anomalies}))
        if not names:
            raise NoAnomaly("the run shows no violation: nothing to shrink")
        requested = str(Anomaly(guarantee or "any guarantee", sub_kind or ""))
        raise NoAnomaly(f"the run shows {names}, not {requested}: nothing to shrink")
    return min(matching, key=lambda pair: NEVER_NS if pair[1] is None else pair[1])[0]


def first_ns(run_dir: Path, result: Result, anomaly: Anomaly) -> int | None:
    """The time at which a run first showed an anomaly; None if it has no time or did not occur."""
    return dict(_shown_anomalies(run_dir, result)).get(anomaly)


def _shown_anomalies(run_dir: Path, result: Result) -> list[tuple[Anomaly, int | None]]:
    """All anomalies, without permitted findings and guarantees that are not judged."""
    return [
        (Anomaly(guarantee.name, kind), at_ns)
        for guarantee in result.guarantees
        if guarantee.status == "violated"
        for kind, at_ns in sorted(violated_sub_kinds(run_dir, guarantee).items())
    ]
