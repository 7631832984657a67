"""Tries of schedules: k of n must show the anomaly. Each is a run on disk and a line of a ledger.

A schedule in the ledger is not tried again, so an interrupted shrinking continues where it stopped.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from urteil.harness.hunt.shrinking.anomaly import Anomaly, Outcome
from urteil.harness.schedule import Schedule


class BudgetSpent(Exception):
    """The time for further tries is used up."""


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule is accepted when `hits` of at most `tries` runs show the anomaly."""

    hits: int = 2
    tries: int = 3

    def __post_init__(self) -> None:
        if not 1 <= self.hits <= self.tries:
            raise ValueError(
                f"{self.hits} of {self.tries} tries is impossible: give 1 <= hits <= tries"
            )


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """The tries of one schedule. `run` is the newest that showed the anomaly."""

    hits: int
    tries: int
    others: tuple[Anomaly, ...] = ()
    seconds: float = 0.0
    run: str = ""


class _Tried(msgspec.Struct, frozen=True, kw_only=True):
    key: str
    outcome: Outcome


class Tries:
    """Plays schedules, counts outcomes, and stores them in `ledger`, one line a try.

    `play` plays one schedule and returns its outcome. Raises BudgetSpent instead of a try that
    would begin after `deadline` (CLOCK_MONOTONIC, seconds).
    """

    def __init__(
        self,
        play: Callable[[Schedule], Outcome],
        anomaly: Anomaly,
        ledger: Path,
        *,
        rule: Rule,
        deadline: float,
    ) -> None:
        self.anomaly, self.rule = anomaly, rule
        self._play, self._ledger, self._deadline = play, ledger, deadline
        self._known: dict[str, list[Outcome]] = {}
        self.played = 0
        content = ledger.read_bytes() if ledger.exists() else b""
        if content and not content.endswith(b"\n"):
            with ledger.open("ab") as file:
                file.write(b"\n")  # ends a line that a kill cut short
        for line in content.splitlines():
            self._remember(line)

    def decide(self, schedule: Schedule) -> tuple[bool, Tally]:
        """Whether the first tries meet the rule. Plays no more of them than the decision needs."""
        rule, played = self.rule, 0
        while True:
            tally = self.tally(schedule, played)
            if tally.hits >= rule.hits or tally.tries - tally.hits > rule.tries - rule.hits:
                return tally.hits >= rule.hits, tally
            played += 1
            self.repeat(schedule, played)

    def repeat(self, schedule: Schedule, tries: int) -> None:
        """Play the schedule until it was played `tries` times."""
        while len(self._outcomes(schedule)) < tries:
            self._try(schedule)

    def tally(self, schedule: Schedule, first: int | None = None) -> Tally:
        """The tally of a schedule's first tries, or of all."""
        outcomes = self._outcomes(schedule)[:first]
        other_anomalies = {
            anomaly for outcome in outcomes for anomaly in outcome.shows if anomaly != self.anomaly
        }
        return Tally(
            hits=sum(self.anomaly in outcome.shows for outcome in outcomes),
            tries=len(outcomes),
            others=tuple(sorted(other_anomalies)),
            seconds=round(sum(outcome.seconds for outcome in outcomes), 1),
            run=next(
                (outcome.run for outcome in reversed(outcomes) if self.anomaly in outcome.shows), ""
            ),
        )

    def _outcomes(self, schedule: Schedule) -> list[Outcome]:
        return self._known.get(key_of(schedule), [])

    def _try(self, schedule: Schedule) -> None:
        if time.monotonic() >= self._deadline:
            raise BudgetSpent
        outcome = self._play(schedule)
        self.played += 1
        line = msgspec.json.encode(_Tried(key=key_of(schedule), outcome=outcome))
        with self._ledger.open("ab") as file:
            file.write(line + b"\n")
        self._remember(line)

    def _remember(self, line: bytes) -> None:
        """Read one line. A line that a kill cut short is a try that was not made."""
        try:
            tried = msgspec.json.decode(line, type=_Tried)
        except msgspec.DecodeError:
            return
        self._known.setdefault(tried.key, []).append(tried.outcome)


def key_of(schedule: Schedule) -> str:
    """A key that is equal for schedules that play alike."""
    entries = tuple(msgspec.structs.replace(fault, played=None) for fault in schedule.faults)
    plain = msgspec.structs.replace(schedule, faults=entries)
    return hashlib.sha256(msgspec.json.encode(plain)).hexdigest()[:16]
