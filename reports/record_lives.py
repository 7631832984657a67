"""Plots of the records that findings name: sent, acknowledged, replicated, read, lost.

A lane for the client, one for each broker that has a log of the partition, one for each reader.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from bokeh.embed import components
from bokeh.models import ColumnDataSource, HoverTool, Label, Range1d, Span

from urteil.harness.scenario import load_facts
from urteil.harness.verify.record_timeline import Life, Replica, lives_of
from urteil.harness.verify.result import Result, Status
from urteil.reports.evidence_views import NS
from urteil.reports.finding_subjects import record_of
from urteil.reports.palette import FAULT
from urteil.reports.timeline_plots import bands, blank_figure, legend, plain
from urteil.reports.timeline_tracks import Band

MOST_PLOTS = 12
"""The most plots of a page."""
MOST_OF_A_GUARANTEE = 3
READERS = 6
MARKS = {
    "sent": ("#3b82c4", "triangle"),
    "acknowledged": ("#2e9d5b", "circle"),
    "failed": (FAULT, "x"),
    "unknown": ("#e0a030", "diamond"),
    "read": ("#3b82c4", "square"),
}
SIZES = {"sent": 16}
"""Larger, since the acknowledgement usually lies at the same place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnLife:
    """A life as a picture and as lines; `script` and `markup` need the page's library."""

    life: Life
    script: str
    markup: str


def draw_lives(run_dir: Path, result: Result, origin_ns: int) -> dict[str, DrawnLife]:
    """Plots of the first records that findings name, by value_id; their seconds count from
    `origin_ns`. Records of which the evidence has nothing are left out."""
    value_ids = _select_records(result)
    if not value_ids:
        return {}
    lives_by_value = lives_of(run_dir, value_ids, load_facts(run_dir))
    return {
        value_id: _draw_life(msgspec.structs.replace(life, begin_ns=origin_ns))
        for value_id, life in lives_by_value.items()
    }


def _select_records(result: Result) -> list[str]:
    value_ids: dict[str, None] = {}
    order = (Status.VIOLATED, Status.PERMITTED)
    judged = sorted(
        (g for g in result.guarantees if g.status in order), key=lambda g: order.index(g.status)
    )
    for guarantee in judged:
        named = [
            value_id
            for value_id in map(record_of, guarantee.findings[: 4 * MOST_OF_A_GUARANTEE])
            if value_id
        ]
        value_ids |= dict.fromkeys(list(dict.fromkeys(named))[:MOST_OF_A_GUARANTEE])
    return list(value_ids)[:MOST_PLOTS]


def _draw_life(life: Life) -> DrawnLife:
    begin_s, end_s = _window(life)
    readers = list(dict.fromkeys(_reader(m.text) for m in life.moments if m.kind == "read"))
    client = "client"
    brokers = sorted({f"b{replica.broker}" for replica in life.replicas})
    lanes = [client, *brokers, *map(plain, readers[:READERS]), " "]
    plot = blank_figure(
        f"{plain(life.value_id)} in {plain(life.place)}", 80 + 30 * len(lanes),
        x_range=Range1d(begin_s, end_s + (end_s - begin_s) * 0.45), y_range=lanes[::-1],
        tools="xpan,xbox_zoom,reset", active_drag="xbox_zoom", min_border_left=90,
    )  # fmt: skip
    plot.xaxis.axis_label = "seconds since the first send"
    plot.grid.grid_line_color = None
    plot.yaxis.major_tick_line_color = None
    _draw_leaders(plot, life, set(brokers), end_s)
    _draw_moments(plot, life, lanes, client, end_s)
    _draw_lane_ends(plot, life, lanes, end_s)
    _mark_loss(plot, life)
    script, markup = components(plot)
    return DrawnLife(life=life, script=script, markup=markup)


def _seconds(life: Life, at_ns: int) -> float:
    return (at_ns - life.begin_ns) / NS


def _window(life: Life) -> tuple[float, float]:
    """From before the send to the last moment of the record, without final readers."""
    near = [
        _seconds(life, m.at_ns)
        for m in life.moments
        if m.kind != "read" or not _reader(m.text).startswith("final")
    ] or [_seconds(life, m.at_ns) for m in life.moments]
    sent = [_seconds(life, m.at_ns) for m in life.moments if m.kind == "sent"]
    begin = (min(sent) if sent else min(near, default=0.0)) - 0.5
    return begin, max([begin + 1.0, *near])


def _reader(text: str) -> str:
    """`read by c1 at offset ...`: c1."""
    return text.removeprefix("read by ").partition(" at offset")[0]


def _draw_leaders(plot: Any, life: Life, brokers: set[str], end_s: float) -> None:
    """The leader and the in-sync replicas over time."""
    shown = []
    ends = [_seconds(life, state.at_ns) for state in life.led[1:]] + [end_s]
    for state, until in zip(life.led, ends, strict=True):
        begin = max(_seconds(life, state.at_ns), plot.x_range.start)
        for broker in {state.leader, *state.isr}:
            if f"b{broker}" in brokers and until > begin:
                leads = broker == state.leader
                shown.append(
                    Band(lane=f"b{broker}", begin_s=begin, end_s=until, shade=f"broker {broker}",
                         text="leads" if leads else "", faint=not leads,
                         detail=f"{'leads' if leads else 'in sync'}, epoch {state.leader_epoch}")
                )  # fmt: skip
    if shown:
        bars = bands(plot, shown, end_s - plot.x_range.start)
        tips = [("", "@lane: @detail"), ("from", "@left{0.00} s"), ("to", "@right{0.00} s")]
        plot.add_tools(HoverTool(tooltips=tips, renderers=[bars]))


def _draw_moments(plot: Any, life: Life, lanes: list[str], client: str, end_s: float) -> None:
    for kind, (colour, marker) in MARKS.items():
        moments = [moment for moment in life.moments if moment.kind == kind]
        if not moments:
            continue
        places = [plain(_reader(m.text)) if kind == "read" else client for m in moments]
        kept = [n for n, place in enumerate(places) if place in lanes]
        source = ColumnDataSource(
            {
                "at": [min(_seconds(life, moments[n].at_ns), end_s) for n in kept],
                "lane": [places[n] for n in kept],
                "what": [
                    f"{_seconds(life, moments[n].at_ns):.3f} s: {moments[n].text}" for n in kept
                ],
            }
        )
        marks = plot.scatter("at", "lane", marker=marker, size=SIZES.get(kind, 11), color=colour,
                             source=source, legend_label=kind)  # fmt: skip
        plot.add_tools(HoverTool(tooltips=[("", "@what")], renderers=[marks]))
    legend(plot, "above")


def _draw_lane_ends(plot: Any, life: Life, lanes: list[str], end_s: float) -> None:
    """Beside each lane, what the replica's log holds in the end."""
    shown = [replica for replica in life.replicas if f"b{replica.broker}" in lanes]
    source = ColumnDataSource(
        {
            "at": [end_s] * len(shown),
            "lane": [f"b{replica.broker}" for replica in shown],
            "text": [_copies_text(replica) for replica in shown],
            "colour": ["#2e9d5b" if replica.offsets else FAULT for replica in shown],
        }
    )
    plot.text(x="at", y="lane", text="text", text_color="colour", source=source, x_offset=8,
              text_baseline="middle", text_font_size="11px")  # fmt: skip


def _copies_text(replica: Replica) -> str:
    if replica.offsets:
        return "has it at " + ", ".join(map(str, replica.offsets))
    return "lacks it in the end" + (f", has {plain(replica.instead)}" if replica.instead else "")


def _mark_loss(plot: Any, life: Life) -> None:
    """Mark the first leader after the acknowledgement whose log lacks the record in the end."""
    acked = next((m.at_ns for m in life.moments if m.kind == "acknowledged"), None)
    without = {replica.broker for replica in life.replicas if not replica.offsets}
    if acked is None:
        return
    epoch = max((state.leader_epoch for state in life.led if state.at_ns <= acked), default=-1)
    for state in life.led:
        if state.at_ns > acked and state.leader_epoch > epoch and state.leader in without:
            at = _seconds(life, state.at_ns)
            plot.add_layout(
                Span(location=at, dimension="height", line_color=FAULT, line_dash="dashed")
            )
            text = f"lost: b{state.leader} leads without it (epoch {state.leader_epoch})"
            plot.add_layout(
                Label(x=at, y=5, y_units="screen", text=text, text_font_size="11px",
                      text_color=FAULT, x_offset=3)
            )  # fmt: skip
            return
