"""An investigated failure: how often its seed shows it, and its smallest schedule."""

from __future__ import annotations

from math import ceil, log

import msgspec

from urteil.harness.confidence import lower_bound
from urteil.harness.hunt.job import Job
from urteil.harness.hunt.shrinking import Rule
from urteil.harness.schedule import Entry, Schedule

OFTEN = 0.6
MOST_TRIES = 10
_MISSED = 0.05


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """The investigation of a signature that a run of `job` showed first. `hits` of `tries` further
    runs of the same seed showed it too. `ended` is the end of shrinking (`shrink_steps.Report`), or
    the reason for its absence. `smallest` is the smallest schedule, which `smallest_hits` of
    `smallest_tries` runs showed; `folder` holds it and its tries."""

    signature: str
    job: Job
    at: str
    hits: int = 0
    tries: int = 0
    ended: str = ""
    smallest: Schedule | None = None
    smallest_hits: int = 0
    smallest_tries: int = 0
    folder: str = ""

    @property
    def rate(self) -> str:
        if not self.tries:
            return "not run again"
        bound = lower_bound(self.hits, self.tries)
        return f"{self.hits} of {self.tries} (at least {bound:.0%})"

    @property
    def shortest(self) -> str:
        """The smallest schedule in one line, or the reason for its absence."""
        if self.smallest is None:
            return self.ended
        faults = ", ".join(map(_fault_text, self.smallest.faults)) or "no fault"
        description = f"{faults}: {self.smallest_hits} of {self.smallest_tries}"
        return description if self.ended == "smallest" else f"{description} ({self.ended})"


def kind_of(signature: str) -> str:
    """The guarantee and sub-kind of a signature, in the form of `Row.shows`."""
    return signature.partition(" under ")[0]


def guarantee_of(signature: str) -> str:
    return kind_of(signature).partition("/")[0]


def rule_for(hits: int, tries: int) -> Rule:
    """The rule for a smaller schedule, if `hits` of `tries` runs of the seed showed the signature.
    Frequent failures need two of three tries. Rare ones need one, out of as many tries as show it
    with 95 % probability, at most ten."""
    rate = hits / tries if tries else 1.0
    if rate >= OFTEN:
        return Rule(hits=2, tries=3)
    tries_needed = ceil(log(_MISSED) / log(1 - rate)) if rate else MOST_TRIES
    return Rule(hits=1, tries=min(MOST_TRIES, tries_needed))


def _fault_text(entry: Entry) -> str:
    return f"{entry.fault} {entry.target} for {entry.duration_s:.1f} s"
