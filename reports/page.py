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
from urteil.harness.verify.result import Finding, GuaranteeResult, Result, Status, Verdict
from urteil.harness.verify.words import counted, times
from urteil.reports.loaded import Loaded
from urteil.reports.logs import Cut, cuts, stacks
from urteil.reports.named import cycle_of, record_of
from urteil.reports.opened import NS, opened
from urteil.reports.repeats import repeats
from urteil.reports.series import Series, load_series
from urteil.reports.template import environment

KINDS = 3
"""Of faults that the verdict's sentence names."""
ORDER = [Status.VIOLATED, Status.UNKNOWN, Status.PERMITTED, Status.HOLDS, Status.NOT_JUDGED]


@dataclass(slots=True, kw_only=True)
class Pictures:
    """All that Bokeh draws: its own script, the plots' scripts, and where they stand."""

    library: str = ""
    scripts: list[str]
    timeline: str = ""
    lives: dict[str, Any]
    graphs: dict[str, str]
    cuts: list[Cut]
    series: Series | None = None
    origin_ns: int = 0
    left_out: bool = False
    """Nothing was drawn, to save time."""


def write_page(
    run_dir: Path, run: Loaded, mutants: Mapping[str, Sequence[str]], *, pictures: bool = True
) -> Path:
    """Draw the page of a run into `run_dir/report.html`, whole or not at all."""
    path = run_dir / "report.html"
    part = path.with_suffix(".html.part")
    text = page_of(run_dir, run, mutants, pictures=pictures)
    part.write_text(text, encoding="utf-8", errors="replace")
    part.replace(path)
    return path


def page_of(
    run_dir: Path, run: Loaded, mutants: Mapping[str, Sequence[str]], *, pictures: bool = True
) -> str:
    """The page of a run. `mutants` names, by guarantee, the seeded bugs that its check is known to
    catch."""
    result = run.result
    drawn = _pictures(run_dir, run) if pictures else _without_pictures(run)
    template = _environment(drawn.origin_ns).get_template("report.html.j2")
    return template.render(
        run=run,
        result=result,
        sentence=sentence(result),
        own=_own(run),
        guarantees=sorted(result.guarantees, key=lambda g: ORDER.index(g.status)),
        pictures=drawn,
        folder=run_dir,
        stacks=stacks(run_dir),
        repeats=repeats(run_dir, result),
        caught={name: mutants[name] for name in _judged(result) if mutants.get(name)},
        Status=Status,
    )


def _pictures(run_dir: Path, run: Loaded) -> Pictures:
    """What can be drawn; what cannot is told among what the run lacks."""
    from urteil.reports.graphs import graphs
    from urteil.reports.lives import lives
    from urteil.reports.plots import library, timeline
    from urteil.reports.tracks import tracks

    found = Pictures(scripts=[], lives={}, graphs={}, cuts=[])
    found.origin_ns = min((fault.begin_ns for fault in run.result.faults), default=0)
    with opened(run_dir) as evidence:
        run.lacks.extend(evidence.lacks)
        found.series = series = load_series(evidence, run.result.faults)
        if series is not None:
            found.origin_ns = series.origin_ns
            lanes = tracks(evidence, series, run.result.faults)
            script, found.timeline = timeline(series, lanes, run.result.faults)
            found.scripts.append(script)
        found.cuts = cuts(run_dir, evidence, run.result)
    try:
        found.lives = lives(run_dir, run.result, found.origin_ns)
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:
        run.lacks.append(f"the lives of records cannot be told: {error}")
    found.scripts += [life.script for life in found.lives.values()]
    for way, (script, markup) in graphs(run.result).items():
        found.scripts.append(script)
        found.graphs[way] = markup
    found.library = library() if found.scripts else ""
    return found


def _without_pictures(run: Loaded) -> Pictures:
    """What needs neither the evidence nor Bokeh: opening both takes longer than judging a small
    history."""
    found = Pictures(scripts=[], lives={}, graphs={}, cuts=[], left_out=True)
    found.origin_ns = min((fault.begin_ns for fault in run.result.faults), default=0)
    return found


def sentence(result: Result) -> str:
    """The verdict in one sentence."""
    violated = [g for g in result.guarantees if g.status is Status.VIOLATED]
    judged = [g for g in result.guarantees if g.status in (Status.HOLDS, Status.PERMITTED)]
    faults = _under(result)
    if result.verdict is Verdict.FAIL and violated:
        first, *others = violated
        also = ", ".join(f"{g.name} ({g.violations:,})" for g in others)
        told = f"{_about(first.name)} ({first.name}, {times(first.violations)})"
        return f"Broken {faults}: {told}{f'; also {also}' if also else ''}."
    if result.verdict is Verdict.PASS:
        sends = result.counts.get("sends", 0)
        return f"{counted(len(judged), 'guarantee')} held over {sends:,} sends {faults}."
    why = result.reasons or ["no reason was told"]
    more = f", and {counted(len(why) - 1, 'more reason')}" if why[1:] else ""
    return f"Nothing can be said: {why[0]}{more}."


def _under(result: Result) -> str:
    """How many faults, and the kinds of the first ones."""
    if not result.faults:
        return "without faults"
    kinds = list(dict.fromkeys(fault.fault for fault in result.faults))
    named = ", ".join([*kinds[:KINDS], *(["…"] if len(kinds) > KINDS else [])])
    return f"under {counted(len(result.faults), 'fault')} ({named})"


def _about(name: str) -> str:
    """What it is that was seen, in words."""
    known = GUARANTEES.get(name)
    return known.about if known else "a promise that this version does not know"


def _own(run: Loaded) -> list[GuaranteeResult]:
    """The promises that the scenario puts to the test; those that broke come first."""
    named = set(run.scenario.guarantees) if run.scenario else set()
    broken = [g for g in run.result.guarantees if g.status is Status.VIOLATED]
    return broken + [g for g in run.result.guarantees if g.name in named and g not in broken]


def _judged(result: Result) -> list[str]:
    return [g.name for g in result.guarantees if g.status is not Status.NOT_JUDGED]


def _environment(origin_ns: int) -> jinja2.Environment:
    templates = environment()
    templates.filters |= {
        "at": lambda at_ns: f"{(at_ns - origin_ns) / NS:.2f} s",
        "slug": lambda status: str(status).replace(" ", "-"),
        "columns": _columns,
        "unreported": _unreported,
        "groups": _groups,
        "reasons": _reasons,
        "record": record_of,
        "cycle": lambda finding: " -> ".join(cycle_of(finding)),
        "percent": partial("{:.1%}".format),
        "counted": counted,
        "times": times,
    }
    return templates


def _columns(records: list[dict[str, Any]]) -> list[str]:
    """Every key of the records, in the order of first appearance."""
    return list(dict.fromkeys(key for record in records for key in record))


def _unreported(guarantee: GuaranteeResult) -> int:
    """How many findings are counted but not shown."""
    return max(0, guarantee.violations + guarantee.permitted - len(guarantee.findings))


def _groups(findings: list[Finding]) -> list[tuple[str, list[Finding]]]:
    """Findings of one kind together, in the order of their first; what is permitted is last."""

    def key(one: Finding) -> tuple[bool, str]:
        return one.permitted is not None, one.sub_kind

    return [(kind, list(found)) for (_, kind), found in groupby(sorted(findings, key=key), key=key)]


def _reasons(guarantee: GuaranteeResult) -> list[tuple[str, int]]:
    """Why findings were permitted, and how many of those that were kept."""
    return Counter(f.permitted for f in guarantee.findings if f.permitted).most_common()
