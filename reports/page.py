"""`report.html`: one self-contained page that opens from disk without a network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jinja2

from urteil.harness.verify.result import GuaranteeResult, Result, Status, Verdict
from urteil.reports.plots import timeline
from urteil.reports.series import NS, load_series

ORDER = [Status.VIOLATED, Status.UNKNOWN, Status.PERMITTED, Status.HOLDS, Status.NOT_JUDGED]


def write_page(run_dir: Path, result: Result) -> Path:
    """Draw the page of a run into `run_dir/report.html`, whole or not at all."""
    series = load_series(run_dir)
    library, script, markup = timeline(series, result.faults) if series else ("", "", "")
    origin_ns = series.origin_ns if series else min((f.begin_ns for f in result.faults), default=0)
    text = (
        _environment(origin_ns)
        .get_template("report.html.j2")
        .render(
            result=result,
            sentence=sentence(result),
            guarantees=sorted(result.guarantees, key=lambda g: ORDER.index(g.status)),
            library=library,
            script=script,
            markup=markup,
        )
    )
    path = run_dir / "report.html"
    part = path.with_suffix(".html.part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)
    return path


def sentence(result: Result) -> str:
    """The verdict in one sentence."""
    violated = [g for g in result.guarantees if g.status is Status.VIOLATED]
    judged = [g for g in result.guarantees if g.status in (Status.HOLDS, Status.PERMITTED)]
    faults = f"under {_count(len(result.faults), 'fault')}" if result.faults else "without faults"
    if result.verdict is Verdict.FAIL and violated:
        broken = ", ".join(f"{g.name} ({g.violations:,})" for g in violated)
        return f"Broken {faults}: {broken}."
    if result.verdict is Verdict.PASS:
        sends = result.counts.get("sends", 0)
        return f"{_count(len(judged), 'guarantee')} held over {sends:,} sends {faults}."
    return "Nothing can be said: " + "; ".join(result.reasons) + "."


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _environment(origin_ns: int) -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("urteil.reports"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["at"] = lambda at_ns: f"{(at_ns - origin_ns) / NS:.2f} s"
    environment.filters["slug"] = lambda status: str(status).replace(" ", "-")
    environment.filters["columns"] = _columns
    environment.filters["unreported"] = _unreported
    return environment


def _columns(records: list[dict[str, Any]]) -> list[str]:
    """Every key of the records, in the order of first appearance."""
    return list(dict.fromkeys(key for record in records for key in record))


def _unreported(guarantee: GuaranteeResult) -> int:
    """How many findings are counted but not shown."""
    return max(0, guarantee.violations + guarantee.permitted - len(guarantee.findings))
