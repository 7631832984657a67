"""Draw docs/pictures/guarantees from the scenes of `scenes.py`, with a real chromium:

    python -m tests.docs.guarantee_pictures [NAME ...]

Look at the pictures. docs/reference/guarantees shows them.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bokeh.embed import file_html
from bokeh.models import Arrow, NormalHead, Range1d
from bokeh.plotting import figure
from bokeh.resources import INLINE

from tests.docs.named import ROOT
from tests.docs.scenes import SCENES
from tests.reports.browser import Browser, running_browser
from urteil.harness.verify.guarantees import GUARANTEES

WIDTH, LANE_PX, EDGE_PX = 640, 46, 26
OK, BAD, FAULT, INK = "#2e7d4f", "#c93434", "#b36b00", "#39424c"
FILL = {OK: "#dcefe2", BAD: "#f9dcdc", FAULT: "#fbeacb"}
LABELS = 2.6
"""How much of the width, in units of time, the names of lanes take."""
SVG = """
const views = Object.values(Bokeh.index.roots ?? Bokeh.index);
return views[0].export('svg').ctx.get_serialized_svg(true);
"""
_LINE = re.compile(r"([\d.]+)(?:-([\d.]+))? (.+)")


class Scene:
    """One picture; `lanes` are numbered from the top."""

    def __init__(self, text: str) -> None:
        head, *lines = text.splitlines()
        self.lanes = head.split(", ")
        height = LANE_PX * len(self.lanes) + EDGE_PX
        self.plot = figure(
            width=WIDTH, height=height, toolbar_location=None, output_backend="svg",
            x_range=Range1d(-LABELS, 10.6), y_range=Range1d(0.5 - len(self.lanes), 0.75),
            background_fill_color="white", border_fill_color="white", outline_line_color=None,
        )  # fmt: skip
        self.plot.axis.visible = False
        self.plot.grid.visible = False
        for number, lane in enumerate(self.lanes):
            self.plot.line([0, 10.4], [-number, -number], color="#c8ced4", line_width=1)
            self._say(-0.2, -number, lane, INK, align="right", weight="bold")
        for line in lines:
            self._draw(line)

    def _draw(self, line: str) -> None:
        if " = " in line:
            lane, _, cells = line.partition(" = ")
            self._cells(self.y(lane), cells.split())
            return
        match = _LINE.fullmatch(line)
        assert match, line
        begin, end, rest = match.groups()
        lane, text = self._place(rest)
        colour, text = _colour(text)
        if end:
            self._stretch(float(begin), float(end), self.y(lane), text, colour)
        elif ">" in lane:
            source, _, target = lane.partition(">")
            self._arrow(float(begin), self.y(source), self.y(target), text, colour)
        else:
            self.plot.scatter([float(begin)], [self.y(lane)], size=9, color=colour)
            self._say(float(begin) + 0.2, self.y(lane) + 0.22, text, colour)

    def _place(self, rest: str) -> tuple[str, str]:
        both = [f"{lane}>{other}" for lane in self.lanes for other in self.lanes]
        names = (*both, *self.lanes)
        shorts = {short: name for name in names for short in (name, self._short(name))}
        fit = max((name for name in shorts if rest.startswith(f"{name} ")), key=len)
        return shorts[fit], rest[len(fit) + 1 :]

    @staticmethod
    def _short(name: str) -> str:
        return name.replace(" (leader)", "")

    def y(self, lane: str) -> float:
        known = {self._short(name): -number for number, name in enumerate(self.lanes)}
        return float(known[self._short(lane)])

    def _arrow(self, at: float, y: float, target: float, text: str, colour: str) -> None:
        step = 0.09 if target < y else -0.09
        head = NormalHead(size=8, fill_color=colour, line_color=colour)
        self.plot.add_layout(
            Arrow(x_start=at, y_start=y - step, x_end=at + 0.8, y_end=target + step, end=head,
                  line_color=colour, line_width=2)
        )  # fmt: skip
        self._say(at + 0.75, (y + target) / 2, text, colour)

    def _stretch(self, begin: float, end: float, y: float, text: str, colour: str) -> None:
        self.plot.quad(left=begin, right=end, bottom=y - 0.22, top=y + 0.22,
                       fill_color=FILL[colour], line_color=colour)  # fmt: skip
        self._say((begin + end) / 2, y, text, colour, align="center")

    def _cells(self, y: float, cells: list[str]) -> None:
        for number, cell in enumerate(cells):
            colour, text = _colour(cell)
            empty = text == "."
            left = 0.4 + 1.25 * number
            self.plot.quad(left=left, right=left + 1.15, bottom=y - 0.26, top=y + 0.26,
                           fill_color="white" if empty else FILL[colour],
                           line_color="#c8ced4" if empty and colour == OK else colour,
                           line_dash="dashed" if empty else "solid")  # fmt: skip
            self._say(left + 0.575, y, "" if empty else text, colour, align="center")

    def _say(self, x: float, y: float, text: str, colour: str, *, align: str = "left",
             weight: str = "normal") -> None:  # fmt: skip
        self.plot.text([x], [y], [text], text_color=[colour], text_align=align,
                       text_baseline="middle", text_font_size="12px",
                       text_font={"value": "sans-serif"}, text_font_style=weight)  # fmt: skip


def _colour(text: str) -> tuple[str, str]:
    for mark, colour in (("*", BAD), ("!", FAULT)):
        if text.endswith(mark):
            return colour, text[:-1]
    return OK, text


def draw(browser: Browser, name: str, folder: Path) -> None:
    plot: Any = Scene(SCENES[name]).plot
    with tempfile.NamedTemporaryFile("w", suffix=".html") as file:
        file.write(file_html(plot, INLINE, title=name))
        file.flush()
        browser.open(Path(file.name).as_uri(), width=800, height=500)
        browser.until("window.Bokeh && Bokeh.documents.length && Bokeh.documents[0].is_idle")
        (folder / f"{name}.svg").write_text(browser.run(SVG) + "\n")


def main(names: Sequence[str]) -> None:
    """Draw the pictures of the named guarantees, or of all."""
    folder = ROOT / "docs" / "pictures" / "guarantees"
    folder.mkdir(parents=True, exist_ok=True)
    log = Path(tempfile.gettempdir()) / "urteil-pictures-driver.log"
    with running_browser(log) as browser:
        for name in names or SCENES:
            if name in GUARANTEES:
                draw(browser, name, folder)
                print(name)


if __name__ == "__main__":
    main(sys.argv[1:])
