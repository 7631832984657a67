"""How the runs of each scenario went over time: verdicts, throughput, unavailability, recovery."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from bokeh.embed import components
from bokeh.layouts import column
from bokeh.models import ColumnDataSource, DatetimeTickFormatter, HoverTool, Range1d

from urteil.reports.palette import INK
from urteil.reports.run_store import ListedRun
from urteil.reports.timeline_plots import blank_figure, plain

COLOURS = {"PASS": "#2e9d5b", "FAIL": "#d64545", "UNKNOWN": "#e0a030"}
NEWEST = 500
TITLES = {
    "acknowledged": "Acknowledged records a second of load",
    "unavailable": "Longest unavailability under a fault (s)",
    "recovery": "Longest recovery after a fault (s)",
    "violations": "Violations",
}
"""Curves that are drawn if any run has them: a run without faults has no recovery."""


def trend(runs: Sequence[ListedRun]) -> tuple[str, str]:
    """`(script, markup)` of the newest runs of one scenario and target, coloured by verdict."""
    known = sorted((run for run in runs if run.summary), key=lambda run: run.at_s)[-NEWEST:]
    source = ColumnDataSource(
        {
            "at": [run.at_s * 1000 for run in known],
            "name": [plain(run.name) for run in known],
            "verdict": [run.verdict for run in known],
            "colour": [COLOURS.get(run.verdict, INK) for run in known],
            "acknowledged": [_rate(run) for run in known],
            "unavailable": [_maximum(run, "unavailable_s") for run in known],
            "recovery": [_maximum(run, "recovery_s") for run in known],
            "violations": [sum(run.violations.values()) for run in known],
        }
    )
    times = [run.at_s * 1000 for run in known]
    span = Range1d(min(times, default=0) - 3e5, max(times, default=0) + 3e5)
    shown = [name for name in TITLES if not all(map(math.isnan, source.data[name]))]
    plots = [_dots(source, span, name, TITLES[name]) for name in shown]
    script_and_div: tuple[str, str] = components(column(*plots, sizing_mode="stretch_width"))
    return script_and_div


def _rate(run: ListedRun) -> float:
    assert run.summary is not None
    seconds = run.summary.seconds.get("load", 0.0)
    return run.summary.counts.get("acknowledged", 0) / seconds if seconds else float("nan")


def _maximum(run: ListedRun, name: str) -> float:
    assert run.summary is not None
    known = [value for fault in run.summary.faults if (value := getattr(fault, name)) is not None]
    return max(known, default=float("nan"))


def _dots(source: ColumnDataSource, span: Range1d, name: str, title: str) -> Any:
    plot = blank_figure(title, 170, x_axis_type="datetime", x_range=span, min_border_left=70,
                 tools="xpan,xbox_zoom,reset", active_drag="xbox_zoom")  # fmt: skip
    plot.y_range.start = 0
    plot.xaxis.formatter = DatetimeTickFormatter(hours="%H:%M", days="%d %b", minutes="%H:%M")
    plot.line("at", name, source=source, color=INK, line_alpha=0.4)
    dots = plot.scatter("at", name, source=source, color="colour", size=9)
    tips = [("run", "@name"), ("verdict", "@verdict"), (name, f"@{name}{{0,0.0}}")]
    plot.add_tools(HoverTool(tooltips=tips, renderers=[dots]))
    return plot
