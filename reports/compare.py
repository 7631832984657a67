"""A comparison of two runs: versions, settings, throughput, latency, unavailability, findings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from urteil.harness.verify.plurals import count_text
from urteil.reports.evidence_views import open_evidence
from urteil.reports.run_loading import LoadedRun, load_run

MANY = 4
SAME = ("name", "about")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One property of both runs, as text; `change` is set for numbers."""

    part: str
    what: str
    a: str
    b: str
    change: str = ""

    @property
    def differs(self) -> bool:
        return self.a != self.b


def compare(a: Path, b: Path) -> list[Line]:
    """The lines of a comparison; of settings and guarantees, those that differ.

    Raises FileNotFoundError for a folder that is no run.
    """
    first, second = load_run(a), load_run(b)
    return [
        *_pairs("run", _run(first), _run(second)),
        *_pairs("versions", first.result.versions, second.result.versions),
        *_differing_lines("settings", _settings(first), _settings(second)),
        *_figure_lines("load", _load(a), _load(b)),
        *_figure_lines("unavailability", _faults(first), _faults(second)),
        *_differing_lines("guarantees", _statuses(first), _statuses(second)),
    ]


def _run(run: LoadedRun) -> dict[str, str]:
    result = run.result
    return {"verdict": str(result.verdict), "scenario": result.scenario, "target": result.target,
            "mutant": result.mutant or "", "seed": str(result.seed),
            "lacks": ", ".join(run.lacks)}  # fmt: skip


def _settings(run: LoadedRun) -> dict[str, str]:
    """The scenario, flattened."""
    if run.scenario is None:
        return {}
    settings: dict[str, Any] = msgspec.to_builtins(run.scenario)
    return dict(
        _flatten("", {name: setting for name, setting in settings.items() if name not in SAME})
    )


def _flatten(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, nested in value.items():
            yield from _flatten(f"{name}.{key}" if name else str(key), nested)
    elif isinstance(value, (list, tuple)) and any(isinstance(item, dict) for item in value):
        for number, item in enumerate(value):
            yield from _flatten(f"{name}[{number}]", item)
    else:
        listed = ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else value
        yield name, "" if listed is None else str(listed)


def _load(run_dir: Path) -> dict[str, tuple[float, str]]:
    """Throughput and latency of acknowledged sends."""
    with open_evidence(run_dir) as run:
        rows = run.rows(
            "SELECT count(*), (max(complete_ns) - min(invoke_ns)) / 1e9, "
            "quantile_cont((complete_ns - invoke_ns) / 1e6, [0.5, 0.99, 0.999]), "
            "max(complete_ns - invoke_ns) / 1e6 FROM sends WHERE outcome = 'ok'"
        )
        others = run.rows(
            "SELECT count(*) FILTER (outcome = 'fail'), count(*) FILTER (outcome = 'info') "
            "FROM sends"
        )
    count, seconds, quantiles, largest = rows[0]
    if not count or not seconds:
        return {}
    figures = {"acknowledged": (float(count), "")}
    figures |= {"failed": (float(others[0][0]), ""), "unknown": (float(others[0][1]), "")}
    figures["records a second"] = (count / seconds, "/s")
    for name, value in zip(("p50", "p99", "p99.9"), quantiles, strict=True):
        figures[f"latency {name}"] = (value, " ms")
    return figures | {"latency max": (largest, " ms")}


def _faults(run: LoadedRun) -> dict[str, tuple[float, str]]:
    figures: dict[str, tuple[float, str]] = {}
    for number, fault in enumerate(run.result.faults, 1):
        for what, value in (("unavailable", fault.unavailable_s), ("recovery", fault.recovery_s)):
            if value is not None:
                figures[f"{number}. {fault.fault}: {what}"] = (value, " s")
    return figures


def _statuses(run: LoadedRun) -> dict[str, str]:
    return {
        g.name: f"{g.status}"
        + (f", {count_text(g.violations, 'violation')}" if g.violations else "")
        + (f", {g.permitted:,} permitted" if g.permitted else "")
        for g in run.result.guarantees
    }  # fmt: skip


def _pairs(part: str, a: dict[str, str], b: dict[str, str]) -> Iterator[Line]:
    for what in dict.fromkeys([*a, *b]):
        yield Line(part=part, what=what, a=a.get(what, ""), b=b.get(what, ""))


def _differing_lines(part: str, a: dict[str, str], b: dict[str, str]) -> Iterator[Line]:
    return (line for line in _pairs(part, a, b) if line.differs)


def _figure_lines(
    part: str, a: dict[str, tuple[float, str]], b: dict[str, tuple[float, str]]
) -> Iterator[Line]:
    for what in dict.fromkeys([*a, *b]):
        left, right = a.get(what), b.get(what)
        change = _change(right[0] / left[0]) if left and right and left[0] else ""
        yield Line(part=part, what=what, a=_value_text(left), b=_value_text(right), change=change)


def _change(ratio: float) -> str:
    """In percent, or as a factor from MANY on."""
    if ratio >= MANY or 0 < ratio <= 1 / MANY:
        return f"x{ratio:.3g}"
    return f"{ratio - 1:+.0%}"


def _value_text(value: tuple[float, str] | None) -> str:
    if value is None:
        return ""
    number, unit = value
    return f"{number:,.0f}{unit}" if number == int(number) and not unit else f"{number:,.2f}{unit}"
