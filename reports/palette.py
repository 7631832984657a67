"""Colours that are distinguishable on light and dark backgrounds and to colour-blind readers.

`MANY` is Paul Tol's bright palette.
"""

from __future__ import annotations

INK = "#808890"
FAULT = "#d64545"
OUTCOMES = {"ok": "#2e9d5b", "fail": "#d64545", "info": "#e0a030", "read": "#3b82c4"}
QUANTILES = {"p50": "#3b82c4", "p99": "#e0a030", "p99.9": "#c2417f", "max": "#9aa0a8"}
MANY = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#999933", "#882255")
_SHADES = {
    "fault": FAULT,
    "recovery": "#e0a030",
    "message": "#aa3377",
    "none": "#444444",
    "up": "#2e9d5b",
    "gone": "#444444",
    "controller": "#3b82c4",
    "client producer": "#4477aa",
    "client consumer": "#228833",
    "client final": "#66ccee",
}


def shade(name: str) -> str:
    """The colour of a band's shade; `broker N` takes one of MANY, an unknown shade INK."""
    kind, _, number = name.partition(" ")
    if kind == "broker" and number.isdigit():
        return MANY[(int(number) - 1) % len(MANY)]
    return _SHADES.get(name, INK)


def line_colour(number: int) -> str:
    """A colour for the `number`th of several lines."""
    return MANY[number % len(MANY)]
