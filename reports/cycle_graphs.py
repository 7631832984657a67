"""Graphs of transaction cycles, for the findings whose records name one, with edges and places."""

from __future__ import annotations

from math import cos, hypot, pi, sin
from typing import Any

from bokeh.embed import components
from bokeh.models import Arrow, ColumnDataSource, NormalHead, Range1d

from urteil.harness.verify.result import Result
from urteil.reports.finding_subjects import cycle_of, cycle_text, edges_of
from urteil.reports.palette import FAULT, INK, line_colour
from urteil.reports.timeline_plots import blank_figure, plain

DRAWN = 12
EACH = 3
ASIDE = 0.07
"""How far an arrow lies beside the line between its transactions."""
LARGEST = 24
"""Cycles of more transactions are not drawn."""


def graphs(result: Result) -> dict[str, tuple[str, str]]:
    """`(script, markup)` of the first cycles of each guarantee, by the cycle's text."""
    graphs: dict[str, tuple[str, str]] = {}
    for guarantee in result.guarantees:
        findings = [one for one in guarantee.findings if 0 < len(cycle_of(one)) <= LARGEST]
        for finding in findings[:EACH]:
            if len(graphs) < DRAWN:
                drawn = _draw_cycle(cycle_of(finding), edges_of(finding))
                graphs[cycle_text(finding)] = components(drawn)
    return graphs


def _draw_cycle(way: list[str], edges: list[str]) -> Any:
    nodes = list(dict.fromkeys(way))
    at = {
        node: (cos(pi / 2 - 2 * pi * n / len(nodes)), sin(pi / 2 - 2 * pi * n / len(nodes)))
        for n, node in enumerate(nodes)
    }
    plot = blank_figure("Each comes before the next", 260, x_range=Range1d(-2.4, 2.4),
                 y_range=Range1d(-1.35, 1.35), tools="")  # fmt: skip
    plot.axis.visible = False
    plot.grid.grid_line_color = None
    labels = edges or [""] * (len(way) - 1)
    for left, right, label in zip(way, way[1:], labels, strict=False):
        (x, y), (u, v) = at[left], at[right]
        length = hypot(u - x, v - y) or 1.0
        aside = (ASIDE * (v - y) / length, ASIDE * (x - u) / length)  # beside the way back
        plot.add_layout(
            Arrow(x_start=x + 0.12 * (u - x) + aside[0], y_start=y + 0.12 * (v - y) + aside[1],
                  x_end=u - 0.12 * (u - x) + aside[0], y_end=v - 0.12 * (v - y) + aside[1],
                  line_color=FAULT, line_width=2,
                  end=NormalHead(size=10, fill_color=FAULT, line_color=FAULT))
        )  # fmt: skip
        plot.text([(x + u) / 2 + 2 * aside[0]], [(y + v) / 2 + 2 * aside[1]], text=[plain(label)],
                  text_align="left" if aside[0] >= 0 else "right", text_baseline="middle",
                  text_color=INK, text_font_size="11px")  # fmt: skip
    source = ColumnDataSource(
        {"x": [at[n][0] for n in nodes], "y": [at[n][1] for n in nodes],
         "name": [plain(node) for node in nodes],
         "colour": [line_colour(n) for n in range(len(nodes))]}
    )  # fmt: skip
    plot.scatter("x", "y", size=16, color="colour", source=source)
    plot.text("x", "y", text="name", source=source, x_offset=12, text_baseline="middle",
              text_color=INK, text_font_size="12px")  # fmt: skip
    return plot
