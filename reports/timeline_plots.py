"""The timeline of a run: curves and lanes on one shared axis.

Bokeh draws. Its math text would be loaded from the network, so no text here may hold `$$`.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bokeh.embed import components
from bokeh.layouts import column
from bokeh.models import (
    BoxAnnotation,
    ColumnDataSource,
    FixedTicker,
    HoverTool,
    Label,
    NumeralTickFormatter,
    Range1d,
)
from bokeh.plotting import figure
from bokeh.resources import Resources

from urteil.harness.verify.result import FaultResult
from urteil.reports.palette import FAULT, INK, OUTCOMES, QUANTILES, line_colour, shade
from urteil.reports.time_series import Series, Stall, Values
from urteil.reports.timeline_tracks import Band, Track

NAMES = {"info": "unknown"}
LONGEST_TEXT = 60
FEW_DECADES = 2
LEFT_PX = 90
"""Left border of every plot; its title begins there."""


def library() -> str:
    """Bokeh's own script, as a tag for the page."""
    text: str = Resources(mode="inline", components=["bokeh"]).render_js()
    return text


def timeline(
    series: Series, tracks: Sequence[Track], faults: Sequence[FaultResult]
) -> tuple[str, str]:
    """`(script, markup)` of the complete timeline, for a page that includes `library()`."""
    span = Range1d(0, max(series.end_s, 1.0), bounds=(0, max(series.end_s, 1.0)))
    plots = [_throughput(series, span)]
    for kind, quantiles in series.latency_ms.items():
        plots.append(_latency(series, span, kind, quantiles))
    if series.lag:
        plots.append(_lines("Records acknowledged and not read yet", series, span, series.lag))
    if series.acknowledged:
        title = "High watermark of each partition, at least"
        plots.append(_lines(title, series, span, series.acknowledged))
    above = [_lanes(track, span) for track in tracks if track.is_first]
    plots = [*above, *plots, *(_lanes(track, span) for track in tracks if not track.is_first)]
    for plot in plots:
        _mark_faults(plot, series, faults)
    plots[-1].xaxis.axis_label = "seconds since the first send"
    script, markup = components(column(*plots, sizing_mode="stretch_width"))
    return script, markup


def plain(text: object) -> str:
    """`text` shortened for a plot, without Bokeh's math delimiters."""
    shown = str(text).replace("$$", "$").replace("\\[", "[").replace("\\(", "(")
    return shown if len(shown) <= LONGEST_TEXT else shown[: LONGEST_TEXT - 1] + "…"


def blank_figure(title: str, height: int, **options: Any) -> Any:
    """An empty figure in the style of the page."""
    plot = figure(
        title=title,
        height=height,
        sizing_mode="stretch_width",
        background_fill_alpha=0,
        border_fill_alpha=0,
        outline_line_color=None,
        **options,
    )
    plot.toolbar.logo = None
    plot.toolbar.autohide = True
    plot.title.text_color = INK
    plot.title.text_font_size = "12px"
    for axis in plot.axis:
        axis.major_label_text_color = INK
        axis.axis_label_text_color = INK
        axis.axis_line_color = INK
        axis.major_tick_line_color = INK
        axis.minor_tick_line_color = None
    plot.grid.grid_line_alpha = 0.25
    plot.grid.grid_line_color = INK
    return plot


def _figure(title: str, span: Range1d, height: int, **options: Any) -> Any:
    plot = blank_figure(
        title,
        height,
        x_range=span,
        tools="xpan,xwheel_zoom,xbox_zoom,reset",
        active_drag="xbox_zoom",
        active_scroll=None,
        min_border_left=LEFT_PX,
        **options,
    )
    plot.title.offset = 6 - LEFT_PX
    return plot


def _throughput(series: Series, span: Range1d) -> Any:
    plot = _figure("Records a second, by outcome", span, 215)
    plot.y_range.start = 0
    curves = {
        name: values
        for name, values in series.throughput.items()
        if any(values) or name in ("ok", "info")
    }
    _draw(plot, series, curves, OUTCOMES, unit="/s")
    if series.stall is not None and series.stall.length_s > 2 * series.bucket_s:
        _show_stall(plot, series.stall)
    return plot


def _show_stall(plot: Any, stall: Stall) -> None:
    text = f"{stall.length_s:.1f} s without progress"
    plot.add_layout(
        BoxAnnotation(left=stall.begin_s, right=stall.end_s, fill_color=INK, fill_alpha=0.15,
                      line_color=INK, line_dash="dashed")
    )  # fmt: skip
    plot.add_layout(
        Label(x=stall.begin_s, y=112, y_units="screen", text=text, text_font_size="11px",
              text_color=INK, x_offset=3)
    )  # fmt: skip


def _latency(series: Series, span: Range1d, kind: str, quantiles: Mapping[str, Values]) -> Any:
    title = f"How long {kind} took (ms, logarithmic)"
    plot = _figure(title, span, 205, y_axis_type="log")
    plot.yaxis.ticker = FixedTicker(ticks=log_ticks(quantiles.values()))
    plot.yaxis.formatter = NumeralTickFormatter(format="0,0.[000]")
    _draw(plot, series, quantiles, QUANTILES, unit=" ms", dots=True)
    return plot


def log_ticks(curves: Iterable[Values]) -> list[float]:
    """Ticks at powers of ten, and at 2 and 5 times them over at most FEW_DECADES.

    Bokeh's own ticks overlap when the values span less than two decades.
    """
    values = [value for curve in curves for value in curve if value]
    if not values:
        return [1.0]
    first, last = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    steps = (1, 2, 5) if last - first <= FEW_DECADES else (1,)
    return [step * 10.0**power for power in range(first, last + 1) for step in steps]


def _lines(title: str, series: Series, span: Range1d, curves: Mapping[str, Values]) -> Any:
    plot = _figure(title, span, 185)
    plot.y_range.start = 0
    colours = {name: line_colour(number) for number, name in enumerate(curves)}
    _draw(plot, series, curves, colours, unit="")
    return plot


def _draw(
    plot: Any,
    series: Series,
    curves: Mapping[str, Sequence[float | None]],
    colours: Mapping[str, str],
    *,
    unit: str,
    dots: bool = False,
) -> None:
    """Curves with a legend that hides one on a click, and all their values on hover."""
    nan = float("nan")
    data: dict[str, Sequence[float]] = {"at": series.at_s}
    tips = [("second", "@at{0.00}")]
    for number, (name, values) in enumerate(curves.items()):
        data[f"y{number}"] = [nan if value is None else value for value in values]
        tips.append((plain(NAMES.get(name, name)), f"@y{number}{{0,0.[0]}}{unit}"))
    source = ColumnDataSource(data)
    for number, name in reversed(list(enumerate(curves))):  # what is last hides what was before
        shown = {"color": colours.get(name, INK), "source": source}
        label = plain(NAMES.get(name, name))
        plot.line("at", f"y{number}", line_width=1.6, legend_label=label, **shown)
        if dots:
            plot.scatter("at", f"y{number}", size=2.5, legend_label=label, **shown)
    legend(plot, "above")
    if plot.legend:
        plot.legend[0].items = plot.legend[0].items[::-1]
    plot.add_tools(HoverTool(tooltips=tips, mode="vline", renderers=plot.renderers[:1]))


def legend(plot: Any, side: str) -> None:
    """Move the legend of a plot to one of its sides, where it hides no curve."""
    if not plot.legend:
        return
    shared_legend = plot.legend[0]
    shared_legend.orientation = "horizontal"
    shared_legend.background_fill_alpha = 0
    shared_legend.border_line_alpha = 0
    shared_legend.label_text_color = INK
    shared_legend.label_text_font_size = "11px"
    shared_legend.padding, shared_legend.margin, shared_legend.glyph_height = 0, 0, 12
    shared_legend.click_policy = "hide"
    plot.add_layout(shared_legend, side)


def _lanes(track: Track, span: Range1d) -> Any:
    lanes = list(dict.fromkeys(plain(band.lane) for band in track.bands))[::-1]
    title = track.title + (f" (not shown: {track.left_out})" if track.left_out else "")
    plot = _figure(title, span, 50 + max(24, 480 // max(20, len(lanes))) * len(lanes),
                   y_range=lanes)  # fmt: skip
    plot.grid.grid_line_color = None
    bars = bands(plot, track.bands, span.end)
    tips = [("", "@lane: @detail"), ("from", "@left{0.00} s"), ("to", "@right{0.00} s")]
    plot.add_tools(HoverTool(tooltips=tips, renderers=[bars]))
    return plot


def bands(plot: Any, shown: Sequence[Band], axis_s: float) -> Any:
    """Draw bands, each with the leading words of its text that fit."""
    source = ColumnDataSource(
        {
            "lane": [plain(b.lane) for b in shown],
            "left": [round(b.begin_s, 4) for b in shown],
            "right": [round(b.end_s, 4) for b in shown],
            "colour": [shade(b.shade) for b in shown],
            "alpha": [_alpha(b) for b in shown],
            "height": [0.16 if b.thin else 0.72 for b in shown],
            "detail": [b.detail[:300] for b in shown],
            "text": [
                _fitting_words(b, end, axis_s)
                for b, end in zip(shown, _text_ends(shown), strict=True)
            ],
            "ink": [INK if b.faint and b.shade != "fault" else "#ffffff" for b in shown],
        }
    )
    bars = plot.hbar(
        y="lane", left="left", right="right", height="height", fill_color="colour",
        fill_alpha="alpha", line_color="colour", line_alpha=0.8, line_width=0.5, source=source,
    )  # fmt: skip
    plot.text(
        x="left", y="lane", text="text", source=source, text_font_size="11px", x_offset=4,
        text_baseline="middle", text_color="ink",
    )  # fmt: skip
    return bars


def _alpha(band: Band) -> float:
    return 0.22 if band.faint else 0.25 if band.shade == "gone" else 0.85


def _text_ends(shown: Sequence[Band]) -> list[float]:
    """Where the text of each band must end: with the band, or at the next text of its lane."""
    begins: dict[str, list[float]] = {}
    for band in (span for span in shown if span.text):
        begins.setdefault(band.lane, []).append(band.begin_s)
    for lane in begins.values():
        lane.sort()
    ends = []
    for band in shown:
        lane = begins.get(band.lane, [])
        later = bisect_right(lane, band.begin_s)
        ends.append(min([band.end_s, *lane[later : later + 1]]))
    return ends


def _fitting_words(band: Band, end_s: float, axis_s: float) -> str:
    """The leading words of a band's text that fit, at 120 characters across the axis."""
    room = 120 * (end_s - band.begin_s) / max(axis_s, 1e-9)
    text = plain(band.text)
    while len(text) > room and " " in text:
        text = text.rpartition(" ")[0].rstrip()
    return text if len(text) <= room else ""


def _mark_faults(plot: Any, series: Series, faults: Sequence[FaultResult]) -> None:
    """Faults as red bands over every plot."""
    for fault in faults:
        begin, end = series.seconds(fault.begin_ns), series.seconds(fault.healed_ns or fault.end_ns)
        plot.add_layout(
            BoxAnnotation(left=begin, right=end, fill_color=FAULT, fill_alpha=0.1, line_alpha=0,
                          level="underlay")
        )  # fmt: skip
