"""The timeline of a run: throughput, latency, and a lane a partition, on one shared axis.

Bokeh draws. Its math text would be loaded from the network, so no text here may hold `$$`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bokeh.embed import components
from bokeh.layouts import column
from bokeh.models import BoxAnnotation, ColumnDataSource, HoverTool, Label, Range1d
from bokeh.plotting import figure
from bokeh.resources import Resources

from urteil.harness.verify.result import FaultResult
from urteil.reports.series import Series

INK = "#808890"
OUTCOME_COLOURS = {"ok": "#2e9d5b", "fail": "#d64545", "info": "#e0a030"}
LATENCY_COLOURS = {"p50": "#3b82c4", "p99": "#9460c9", "max": "#b0b4ba"}
LEADER_COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb")
FAULT_COLOUR = "#d64545"


def timeline(series: Series, faults: Sequence[FaultResult]) -> tuple[str, str, str]:
    """`(bokeh's own script, the plots' script, the plots' markup)`, nothing from the network."""
    span = Range1d(0, max(series.end_s, 1.0), bounds=(0, max(series.end_s, 1.0)))
    plots = [_throughput(series, span), _latency(series, span)]
    if series.bands:
        plots.append(_lanes(series, span))
    for number, plot in enumerate(plots):
        _mark(plot, series, faults, named=number == 0)
    plots[-1].xaxis.axis_label = "seconds since the first send"
    script, markup = components(column(*plots, sizing_mode="stretch_width"))
    return Resources(mode="inline", components=["bokeh"]).render_js(), script, markup


def _figure(title: str, span: Range1d, height: int, **options: Any) -> Any:
    plot = figure(
        title=title,
        height=height,
        sizing_mode="stretch_width",
        x_range=span,
        tools="xpan,xwheel_zoom,xbox_zoom,reset",
        active_drag="xbox_zoom",
        active_scroll=None,
        background_fill_alpha=0,
        border_fill_alpha=0,
        outline_line_color=None,
        **options,
    )
    plot.toolbar.logo = None
    plot.toolbar.autohide = True
    plot.title.text_color = INK
    for axis in plot.axis:
        axis.major_label_text_color = INK
        axis.axis_label_text_color = INK
        axis.axis_line_color = INK
        axis.major_tick_line_color = INK
        axis.minor_tick_line_color = None
    plot.grid.grid_line_alpha = 0.25
    plot.grid.grid_line_color = INK
    return plot


def _throughput(series: Series, span: Range1d) -> Any:
    plot = _figure("Records a second, by outcome", span, 220)
    plot.y_range.start = 0
    source = ColumnDataSource({"at": series.at_s, **series.throughput})
    for outcome, colour in OUTCOME_COLOURS.items():
        plot.line("at", outcome, source=source, color=colour, line_width=2, legend_label=outcome)
    _legend(plot)
    tips = [("second", "@at{0.0}")] + [(name, f"@{name}{{0.0}}/s") for name in OUTCOME_COLOURS]
    plot.add_tools(HoverTool(tooltips=tips, mode="vline", renderers=plot.renderers[:1]))
    return plot


def _latency(series: Series, span: Range1d) -> Any:
    plot = _figure("Latency of acknowledged sends (ms, logarithmic)", span, 220, y_axis_type="log")
    nan = float("nan")
    values = {k: [nan if v is None else v for v in vs] for k, vs in series.latency_ms.items()}
    source = ColumnDataSource({"at": series.at_s, **values})
    for name, colour in LATENCY_COLOURS.items():
        plot.line("at", name, source=source, color=colour, line_width=2, legend_label=name)
        plot.scatter("at", name, source=source, color=colour, size=3)
    _legend(plot)
    tips = [("second", "@at{0.0}")] + [(name, f"@{name}{{0.0}} ms") for name in LATENCY_COLOURS]
    plot.add_tools(HoverTool(tooltips=tips, mode="vline", renderers=plot.renderers[:1]))
    return plot


def _lanes(series: Series, span: Range1d) -> Any:
    lanes = sorted({band.lane for band in series.bands}, reverse=True)
    title = "Leader of each partition (colour), with epoch and ISR; faint: ISR not full"
    plot = _figure(title, span, 60 + 34 * len(lanes), y_range=lanes)
    bands = series.bands
    source = ColumnDataSource(
        {
            "lane": [b.lane for b in bands],
            "left": [b.begin_s for b in bands],
            "right": [b.end_s for b in bands],
            "colour": [_colour(b.leader) for b in bands],
            "alpha": [0.9 if len(b.isr) == b.replicas else 0.4 for b in bands],
            "leader": ["none" if b.leader < 0 else f"b{b.leader}" for b in bands],
            "epoch": [b.leader_epoch for b in bands],
            "isr": [", ".join(map(str, b.isr)) for b in bands],
            "ink": ["#ffffff" if len(b.isr) == b.replicas else INK for b in bands],
            "text": [_band_text(b.leader, b.isr, b.end_s - b.begin_s, span.end) for b in bands],
        }
    )
    bars = plot.hbar(
        y="lane", left="left", right="right", height=0.7, fill_color="colour",
        fill_alpha="alpha", line_color=None, source=source,
    )  # fmt: skip
    plot.text(
        x="left", y="lane", text="text", source=source, text_font_size="11px", x_offset=4,
        text_baseline="middle", text_color="ink",
    )  # fmt: skip
    tips = [("leader", "@leader"), ("epoch", "@epoch"), ("ISR", "@isr"), ("from", "@left{0.00} s"),
            ("to", "@right{0.00} s")]  # fmt: skip
    plot.add_tools(HoverTool(tooltips=tips, renderers=[bars]))
    return plot


def _band_text(leader: int, isr: Sequence[int], width_s: float, whole_s: float) -> str:
    if width_s < whole_s / 20:
        return ""
    name = "no leader" if leader < 0 else f"b{leader}"
    return name if width_s < whole_s / 8 else f"{name}  isr {','.join(map(str, isr))}"


def _colour(leader: int) -> str:
    return "#444444" if leader < 0 else LEADER_COLOURS[(leader - 1) % len(LEADER_COLOURS)]


def _legend(plot: Any) -> None:
    plot.legend.location = "top_right"
    plot.legend.orientation = "horizontal"
    plot.legend.background_fill_alpha = 0
    plot.legend.border_line_alpha = 0
    plot.legend.label_text_color = INK
    plot.legend.click_policy = "hide"


def _mark(plot: Any, series: Series, faults: Sequence[FaultResult], *, named: bool) -> None:
    for number, fault in enumerate(faults):
        begin, end = series.seconds(fault.begin_ns), series.seconds(fault.healed_ns or fault.end_ns)
        plot.add_layout(
            BoxAnnotation(left=begin, right=end, fill_color=FAULT_COLOUR, fill_alpha=0.12)
        )
        if named:
            text = f"{fault.fault} {', '.join(fault.targets)}"
            plot.add_layout(
                Label(x=max(begin, 0), y=4 + 16 * (number % 3), y_units="screen", text=text,
                      text_font_size="12px", text_color=FAULT_COLOUR, x_offset=2)
            )  # fmt: skip
