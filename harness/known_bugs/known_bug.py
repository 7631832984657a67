"""The declaration of a published bug of Apache Kafka that the lab finds again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownBug:
    """A published bug, the releases that have it, and the guarantee that must see it.

    `issue` is its JIRA or KIP and `about` what goes wrong. `releases` and `fixed_in` are in words;
    `broken` and `fixed` are the two releases that are played, the second one the nearest that has
    the fix. `scenario` has the schedule and the settings that bring the bug about. The bug is found
    when `guarantee` is violated in one of `sub_kinds`; `also` are guarantees that the same bug may
    violate. Where the protocol of the broken release cannot avoid the anomaly, the scenario permits
    it and names it in `must_find`: with `permitted` the bug is found when the run has it. Where a
    moment that no schedule decides makes the same effect a violation of another guarantee,
    `or_shown_by` names that one, as `guarantee/sub-kind`. `target` is `kafka-kraft` for a bug of
    KRaft in releases that have ZooKeeper as well.
    """

    name: str
    issue: str
    about: str
    releases: str
    fixed_in: str
    broken: str
    fixed: str
    scenario: str
    guarantee: str
    sub_kinds: tuple[str, ...]
    also: tuple[str, ...] = ()
    or_shown_by: tuple[str, ...] = ()
    permitted: bool = False
    target: str = "kafka"

    @property
    def broken_target(self) -> str:
        return f"{self.target}:{self.broken}"

    @property
    def fixed_target(self) -> str:
        return f"{self.target}:{self.fixed}"

    @property
    def guarantees(self) -> tuple[str, ...]:
        """The guarantees whose violation shows the bug."""
        return (self.guarantee, *(shown.partition("/")[0] for shown in self.or_shown_by))

    def is_shown_by(self, shows: list[str], must_find: Mapping[str, bool] = {}) -> bool:
        """Whether a run with these violations shows the bug. A violation is `guarantee/sub-kind`,
        which may have an addition: `lost_write/tail, on some replicas`. `must_find` says of the
        anomalies that the scenario names whether the run has them."""
        if self.permitted and must_find.get(self.guarantee, False):
            return True
        names = {f"{self.guarantee}/{kind}" for kind in self.sub_kinds} | {*self.or_shown_by}
        return any(shown.partition(", ")[0] in names for shown in shows)
