"""The target and the options of one fault."""

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
    """`target` is a selector, evaluated against the cluster's state when the fault begins.

    `topic` and `partition` give the roles `leader` and `follower` their meaning. `seed` feeds every
    random choice, so that the same seed and the same state select the same nodes. While the leader
    is a dead node, the selector waits for the next one, at most `election_deadline_s`.
    """

    target: str
    topic: str = ""
    partition: int = 0
    seed: str = ""
    election_deadline_s: float = 20.0
    options: Mapping[str, Option] = field(default_factory=dict)

    def random(self) -> Random:
        """A new generator: each call returns one in the same state."""
        return Random(self.seed)

    def number(
        self, option: str, default: float, *, least: float = -inf, most: float = inf
    ) -> float:
        """A numeric option. ValueError if it is no finite number or outside its bounds."""
        value, number = self.options.get(option, default), nan
        with contextlib.suppress(ValueError):
            number = nan if isinstance(value, bool) else float(value)
        if not isfinite(number):
            raise ValueError(f"{option} must be a number, not {value}")
        if not least <= number <= most:
            raise ValueError(f"{option}={number:g} is not between {least:g} and {most:g}")
        return number

    def flag(self, option: str, default: bool = False) -> bool:
        """A boolean option, which may be text from a command line. ValueError if it is neither
        true nor false."""
        value = self.options.get(option, default)
        parsed = FLAGS.get(value.lower()) if isinstance(value, str) else bool(value)
        if parsed is None:
            raise ValueError(f"{option} is {value!r}: give true or false")
        return parsed
