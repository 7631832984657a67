"""`report.html`: one self-contained page that opens from disk without a network."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import jinja2
import pyarrow as pa

from urteil.harness.verify.guarantees import GUARANTEES
from urteil.harness.verify.plurals import count_text, times
from urteil.harness.verify.rare_states.counts import load_counts
from urteil.harness.verify.result import Finding, GuaranteeResult, Result, Status, Verdict
from urteil.reports.evidence_views import NS, open_evidence
from urteil.reports.finding_subjects import cycle_text, record_of
from urteil.reports.log_excerpts import LogExcerpt, excerpts, stacks
from urteil.reports.repeated_runs import repeats
from urteil.reports.run_loading import LoadedRun
from urteil.reports.template import environment
from urteil.reports.time_series import Series, load_series

KINDS = 3
"""Kinds of faults that the verdict's sentence names."""
ORDER = [Status.VIOLATED, Status.UNKNOWN, Status.PERMITTED, Status.HOLDS, Status.NOT_JUDGED]


@dataclass(slots=True, kw_only=True)
class Pictures:
    """Everything that Bokeh draws, its script, and the log excerpts."""

    library: str = ""
    scripts: list[str]
    timeline: str = ""
    lives: dict[str, Any]
    graphs: dict[str, str]
    excerpts: list[LogExcerpt]
    series: Series | None = None
    origin_ns: int = 0
    left_out: bool = False
    """True when the caller asked for a page without pictures."""


def write_page(
    run_dir: Path, run: LoadedRun, mutants: Mapping[str, Sequence[str]], *, pictures: bool = True
) -> Path:
    """Draw the page of a run into `run_dir/report.html`, atomically."""
    path = run_dir / "report.html"
    part = path.with_suffix(".html.part")
    text = page_of(run_dir, run, mutants, pictures=pictures)
    part.write_text(text, encoding="utf-8", errors="replace")
    part.replace(path)
    return path


def page_of(
    run_dir: Path, run: LoadedRun, mutants: Mapping[str, Sequence[str]], *, pictures: bool = True
) -> str:
    """The page of a run. `mutants` maps a guarantee to the mutants that its check catches."""
    result = run.result
    drawn = _pictures(run_dir, run) if pictures else _without_pictures(run)
    template = _environment(drawn.origin_ns).get_template("report.html.j2")
    return template.render(
        run=run,
        result=result,
        sentence=sentence(result),
        own=_shown_guarantees(run),
        guarantees=sorted(result.guarantees, key=lambda g: ORDER.index(g.status)),
        pictures=drawn,
        folder=run_dir,
        stacks=stacks(run_dir),
        repeats=repeats(run_dir, result),
        states=load_counts(run_dir),
        caught={name: mutants[name] for name in _judged_names(result) if mutants.get(name)},
        Status=Status,
    )


def _pictures(run_dir: Path, run: LoadedRun) -> Pictures:
    """Draw all pictures; what cannot be drawn is added to `run.lacks`."""
    from urteil.reports.cycle_graphs import graphs
    from urteil.reports.record_lives import draw_lives
    from urteil.reports.timeline_plots import library, timeline
    from urteil.reports.timeline_tracks import tracks

    pictures = Pictures(scripts=[], lives={}, graphs={}, excerpts=[])
    pictures.origin_ns = min((fault.begin_ns for fault in run.result.faults), default=0)
    with open_evidence(run_dir) as evidence:
        run.lacks.extend(evidence.lacks)
        pictures.series = series = load_series(evidence, run.result.faults)
        if series is not None:
            pictures.origin_ns = series.origin_ns
            lanes = tracks(evidence, series, run.result.faults)
            script, pictures.timeline = timeline(series, lanes, run.result.faults)
            pictures.scripts.append(script)
        pictures.excerpts = excerpts(run_dir, evidence, run.result)
    try:
        pictures.lives = draw_lives(run_dir, run.result, pictures.origin_ns)
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:
        run.lacks.append(f"the lives of records cannot be drawn: {error}")
    pictures.scripts += [life.script for life in pictures.lives.values()]
    for way, (script, markup) in graphs(run.result).items():
        pictures.scripts.append(script)
        pictures.graphs[way] = markup
    pictures.library = library() if pictures.scripts else ""
    return pictures


def _without_pictures(run: LoadedRun) -> Pictures:
    """No plots: reading evidence and drawing takes longer than judging a small history."""
    pictures = Pictures(scripts=[], lives={}, graphs={}, excerpts=[], left_out=True)
    pictures.origin_ns = min((fault.begin_ns for fault in run.result.faults), default=0)
    return pictures


def sentence(result: Result) -> str:
    """The verdict in one sentence."""
    violated = [g for g in result.guarantees if g.status is Status.VIOLATED]
    judged = [g for g in result.guarantees if g.status in (Status.HOLDS, Status.PERMITTED)]
    faults = _faults_text(result)
    if result.verdict is Verdict.FAIL and violated:
        first, *others = violated
        also = ", ".join(f"{g.name} ({g.violations:,})" for g in others)
        broken = f"{_describe(first.name)} ({first.name}, {times(first.violations)})"
        return f"Broken {faults}: {broken}{f'; also {also}' if also else ''}."
    if result.verdict is Verdict.PASS:
        sends = result.counts.get("sends", 0)
        return f"{count_text(len(judged), 'guarantee')} held over {sends:,} sends {faults}."
    why = result.reasons or ["no reason was recorded"]
    more = f", and {count_text(len(why) - 1, 'more reason')}" if why[1:] else ""
    return f"Nothing can be said: {why[0]}{more}."


def _faults_text(result: Result) -> str:
    """The number of faults and their first KINDS kinds."""
    if not result.faults:
        return "without faults"
    kinds = list(dict.fromkeys(fault.fault for fault in result.faults))
    named = ", ".join([*kinds[:KINDS], *(["…"] if len(kinds) > KINDS else [])])
    return f"under {count_text(len(result.faults), 'fault')} ({named})"


def _describe(name: str) -> str:
    """The violation of a guarantee in words."""
    known = GUARANTEES.get(name)
    return known.about if known else "a promise that this version does not know"


def _shown_guarantees(run: LoadedRun) -> list[GuaranteeResult]:
    """The guarantees that the scenario names, preceded by all violated ones."""
    named = set(run.scenario.guarantees) if run.scenario else set()
    broken = [g for g in run.result.guarantees if g.status is Status.VIOLATED]
    return broken + [g for g in run.result.guarantees if g.name in named and g not in broken]


def _judged_names(result: Result) -> list[str]:
    return [g.name for g in result.guarantees if g.status is not Status.NOT_JUDGED]


def _environment(origin_ns: int) -> jinja2.Environment:
    templates = environment()
    templates.filters |= {
        "at": lambda at_ns: f"{(at_ns - origin_ns) / NS:.2f} s",
        "slug": lambda status: str(status).replace(" ", "-"),
        "columns": _columns,
        "unreported": _count_unreported,
        "groups": _groups,
        "reasons": _reasons,
        "record": record_of,
        "cycle": cycle_text,
        "percent": partial("{:.1%}".format),
        "counted": count_text,
        "times": times,
    }
    return templates


def _columns(records: list[dict[str, Any]]) -> list[str]:
    """Every key of the records, in the order of first appearance."""
    return list(dict.fromkeys(key for record in records for key in record))


def _count_unreported(guarantee: GuaranteeResult) -> int:
    """The number of findings that are counted but not stored."""
    return max(0, guarantee.violations + guarantee.permitted - len(guarantee.findings))


def _groups(findings: list[Finding]) -> list[tuple[str, list[Finding]]]:
    """Findings grouped by sub-kind, permitted ones last."""

    def key(finding: Finding) -> tuple[bool, str]:
        return finding.permitted is not None, finding.sub_kind

    return [
        (kind, list(of_kind)) for (_, kind), of_kind in groupby(sorted(findings, key=key), key=key)
    ]


def _reasons(guarantee: GuaranteeResult) -> list[tuple[str, int]]:
    """The reasons for permitted findings, with the number of stored findings of each."""
    return Counter(f.permitted for f in guarantee.findings if f.permitted).most_common()
