"""A strict parser of Prometheus' text format 0.0.4, for gauges and counters."""

from __future__ import annotations

import re

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"'
SAMPLE = re.compile(
    rf"({NAME})(?:\{{({LABEL}(?:,{LABEL})*)\}})? (-?[0-9]+(?:\.[0-9]+)?(?:e[-+]?\d+)?)"
)
HELP = re.compile(rf"# HELP ({NAME}) \S.*")
TYPE = re.compile(rf"# TYPE ({NAME}) (gauge|counter)")
ESCAPES = {'\\"': '"', "\\\\": "\\", "\\n": "\n"}

Labels = tuple[tuple[str, str], ...]


def parse(text: str) -> dict[str, dict[Labels, float]]:
    """Return samples by name and labels. AssertionError for text that Prometheus or its linter
    rejects: a family without help or type or in two places, a repeated sample, a negative
    counter."""
    assert text.endswith("\n")
    families: dict[str, dict[Labels, float]] = {}
    lines = iter(text[:-1].split("\n"))
    kind = ""
    for line in lines:
        if help_ := HELP.fullmatch(line):
            type_ = TYPE.fullmatch(next(lines))
            assert type_, line
            assert type_[1] == help_[1] not in families, line
            families[help_[1]], kind = {}, type_[2]
            continue
        sample = SAMPLE.fullmatch(line)
        assert sample, line
        assert sample[1] == list(families)[-1], line
        labels = tuple((name, _plain(value)) for name, value in re.findall(LABEL, sample[2] or ""))
        assert labels not in families[sample[1]], line
        value = float(sample[sample.re.groups])
        assert kind == "gauge" or value >= 0, line
        families[sample[1]][labels] = value
    return families


def _plain(value: str) -> str:
    return re.sub(r'\\["\\n]', lambda match: ESCAPES[match[0]], value)
