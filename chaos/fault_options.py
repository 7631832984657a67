"""Typed options of faults: type, default, bounds, unit and description, declared once.

A fault declares an option as a class attribute, `delay_ms: int = whole_number(100, ...)`. `Fault`
reads the given values with the declarations when a fault is made, so that `self.delay_ms` is a
valid value. Values come from scenarios, from schedules in JSON or TOML, and as text from a command
line.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, isfinite, nan
from typing import Any

Option = str | float | bool
TRUTHS = dict.fromkeys(("true", "yes", "1", "on"), True) | dict.fromkeys(
    ("false", "no", "0", "off"), False
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultOption:
    """The declaration of one option.

    `kind` is the type of its value. The default None means that the fault decides. `least` and
    `most` bound a number; `choices` are the permitted texts, empty for any text. `name` is the
    option's name, by default that of the `attribute` with the value.
    """

    kind: type[float] | type[bool] | type[str]
    default: Option | None
    about: str
    unit: str = ""
    least: float = -inf
    most: float = inf
    choices: tuple[str, ...] = ()
    name: str = ""
    attribute: str = ""

    def __str__(self) -> str:
        """What `urteil list faults` prints."""
        notes = [" or ".join(self.choices)] if self.choices else []
        if self.least > -inf:
            most = "or more" if self.most == inf else f"to {self.most:.10g}"
            notes.append(f"{self.least:.10g} {most}")
        if self.default not in (None, ""):
            is_number = self.kind in (int, float)
            default = f"{self.default:.10g}" if is_number else str(self.default)
            notes.append(f"default {default.lower() if self.kind is bool else default}")
        if self.unit and notes:
            notes[0] = f"{notes[0]} {self.unit}"
        return f"{self.about} ({', '.join(notes)})" if notes else self.about

    def read(self, value: Option) -> Option:
        """The typed value. ValueError for a value of another type or outside the bounds."""
        if self.kind is bool:
            return self._read_flag(value)
        return self._read_text(value) if self.kind is str else self._read_number(value)

    def _read_number(self, value: Option) -> float:
        number = nan
        with contextlib.suppress(ValueError):
            number = nan if isinstance(value, bool) else float(value)
        if not isfinite(number):
            raise ValueError(f"{self.name} must be a number, not {value}")
        if not self.least <= number <= self.most:
            bounds = (
                f"below {self.least:.10g}"
                if self.most == inf
                else f"not between {self.least:.10g} and {self.most:.10g}"
            )
            raise ValueError(f"{self.name}={number:.10g} is {bounds}")
        return round(number) if self.kind is int else number

    def _read_flag(self, value: Option) -> bool:
        parsed = TRUTHS.get(value.lower()) if isinstance(value, str) else bool(value)
        if parsed is None:
            raise ValueError(f"{self.name} is {value!r}: give true or false")
        return parsed

    def _read_text(self, value: Option) -> str:
        """The value as text. A whole number has no point: a file's `versions = 9` is read as
        9.0."""
        is_whole = isinstance(value, float) and value.is_integer()
        text = f"{value:.0f}" if is_whole else str(value)
        if self.choices and text not in (*self.choices, self.default):
            raise ValueError(f"{self.name} is {text!r}: give {' or '.join(self.choices)}")
        return text


def number(
    default: float | None,
    about: str,
    *,
    unit: str = "",
    least: float = -inf,
    most: float = inf,
    name: str = "",
) -> Any:
    """An option that is a number."""
    return FaultOption(
        kind=float, default=default, about=about, unit=unit, least=least, most=most, name=name
    )


def whole_number(
    default: int | None,
    about: str,
    *,
    unit: str = "",
    least: float = -inf,
    most: float = inf,
    name: str = "",
) -> Any:
    """An option that is a whole number. A fraction is rounded."""
    return FaultOption(
        kind=int, default=default, about=about, unit=unit, least=least, most=most, name=name
    )


def flag(about: str, *, default: bool = False) -> Any:
    """An option that is true or false."""
    return FaultOption(kind=bool, default=default, about=about)


def text(default: str, about: str, *, choices: tuple[str, ...] = ()) -> Any:
    """An option that is a text. An empty default means that the fault decides."""
    return FaultOption(kind=str, default=default, about=about, choices=choices)


COORDINATOR_OPTIONS: Mapping[str, FaultOption] = {
    name: FaultOption(kind=str, default="", about=about, name=name)
    for name, about in {
        "group": "the consumer group whose coordinator is the target",
        "transactional_id": "the producer whose coordinator is the target",
    }.items()
}
"""Options of every fault, for the role `coordinator`. `topic` and `partition` are options of every
fault too; they become fields of `FaultArguments`."""
