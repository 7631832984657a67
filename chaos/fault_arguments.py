"""Whom a fault is meant for, and with which options."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf, isfinite, nan
from random import Random

Option = str | float | bool
FLAGS = dict.fromkeys(("true", "yes", "1", "on"), True) | dict.fromkeys(
    ("false", "no", "0", "off"), False
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultArguments:
    """Whom a fault is meant for: a selector, read against the cluster's state when it begins.

    `topic` and `partition` say whose `leader` and `follower` are meant; `seed` feeds every random
    choice, so that the same seed and the same state choose the same nodes. While the `leader` is a
    dead node, the next is waited for, `election_deadline_s` at most.
    """

    target: str
    topic: str = ""
    partition: int = 0
    seed: str = ""
    election_deadline_s: float = 20.0
    options: Mapping[str, Option] = field(default_factory=dict)

    def random(self) -> Random:
        """A fresh generator: two calls choose alike."""
        return Random(self.seed)

    def number(
        self, option: str, default: float, *, least: float = -inf, most: float = inf
    ) -> float:
        """A numeric option; ValueError when it is none that can be counted with, or beyond."""
        value, number = self.options.get(option, default), nan
        with contextlib.suppress(ValueError):
            number = nan if isinstance(value, bool) else float(value)
        if not isfinite(number):
            raise ValueError(f"{option} must be a number, not {value}")
        if not least <= number <= most:
            raise ValueError(f"{option}={number:g} is not between {least:g} and {most:g}")
        return number

    def flag(self, option: str, default: bool = False) -> bool:
        """An option that is true or false; text from a command line counts too, and ValueError
        when it says neither."""
        value = self.options.get(option, default)
        found = FLAGS.get(value.lower()) if isinstance(value, str) else bool(value)
        if found is None:
            raise ValueError(f"{option} is {value!r}: give true or false")
        return found
