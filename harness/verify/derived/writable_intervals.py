"""Times in which a partition must acknowledge records although other nodes are disturbed: rows of
the table `writable_intervals`.

Its leader is registered and stays, the ISR is as large as acks=all requires, a controller is active
(in KRaft: with a majority of its quorum), and no fault acts on the leader, on the controller, on
metadata nodes or on the clients' links to them. Other brokers may be dead, paused or cut off: their
replicas leave the ISR after `replica.lag.time.max.ms`. The time starts again at each begin and end
of such a fault, and at each new state. A partition may stand still for the longer one of one and a
half times that lag and a client's request timeout, and SLACK_NS more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from urteil.chaos.effects import Effect
from urteil.chaos.faults.base.fault import URTEIL, target_kind
from urteil.chaos.topology import node_id
from urteil.harness.scenario import IMPORTED, RunFacts, Scenario
from urteil.harness.topic_settings import setting
from urteil.harness.verify.derived.fault_effects import (
    MAKES_UNAVAILABLE,
    OF_DISKS,
    has_any,
    has_only,
)
from urteil.harness.verify.derived.impact import BROKER, acting_interval, load_of
from urteil.harness.verify.derived.intervals import Interval, undisturbed_between
from urteil.harness.verify.derived.presence import CONTROLLER, broker_path, presence_of
from urteil.harness.verify.derived.small_evidence import SmallEvidence
from urteil.harness.verify.derived.state_spans import Span
from urteil.harness.verify.evidence import Row, links_of, targets_of
from urteil.harness.verify.limits import FOREVER_NS, SECOND_NS

SLACK_NS = 5 * SECOND_NS
_FRESH_METADATA_NS = 3 * SECOND_NS
_MS_NS = 1_000_000
_HARMLESS = frozenset(
    {
        Effect.MOVES_CLOCKS,
        Effect.RECORDS_MESSAGES,
        Effect.KILLS_CLIENTS,
        Effect.STOPS_POLLS,
        Effect.CHANGES_MEMBERS,
        Effect.OPERATES_APPLICATIONS,
    }
)
"""Effects that hinder no partition and no live producer."""
_LASTING = OF_DISKS | {Effect.SETS_QUOTAS, Effect.CHANGES_MIN_ISR}
"""Effects that may delay records after their end, too."""


def writable_rows(
    small: SmallEvidence, scenario: Scenario, facts: RunFacts, partitions: Sequence[Row]
) -> list[Row]:
    """One row for each partition of the run and such a time, if it is long enough to judge.
    `wall_clock` is 1 if a fault had moved the leader's clock and the broker measures lag by that
    clock, as Apache Kafka does (class `Partition`, `isFollowerOutOfSync`)."""
    situation = _Situation(small, scenario)
    if facts.runtime == IMPORTED or not situation.knows_controllers:
        return []
    bound_ns = stall_bound_ns(scenario)
    load = load_of(facts)
    counts_wall_clock = target_kind(facts.target) != URTEIL
    rows = []
    for part in partitions:
        if not part["in_run"] or part["gone"]:
            continue
        for span in small.spans.get(part["p"], []):
            if span.leader < 0 or len(span.isr) < part["min_isr"]:
                continue
            lasted = Interval(max(span.begin_ns, load.begin_ns), min(span.end_ns, load.end_ns))
            for free in situation.unhindered_intervals(span, lasted):
                if free.end_ns - free.begin_ns >= bound_ns:
                    is_moved = counts_wall_clock and situation.is_clock_moved(span.leader, free)
                    rows.append(
                        {"p": part["p"], "from_ns": free.begin_ns, "to_ns": free.end_ns}
                        | {"bound_ns": bound_ns, "leader": span.leader}
                        | {"wall_clock": int(is_moved)}
                    )
    return rows


def stall_bound_ns(scenario: Scenario) -> int:
    """The time in which an unhindered partition may stand still."""
    lag_ms = float(setting(None, scenario, "replica.lag.time.max.ms"))
    noticed_ns = scenario.workload.request_timeout_ms * _MS_NS + _FRESH_METADATA_NS
    return max(int(1.5 * lag_ms * _MS_NS), noticed_ns) + SLACK_NS


class _Situation:
    """The faults of a run, and the times of its brokers and controllers."""

    def __init__(self, small: SmallEvidence, scenario: Scenario) -> None:
        self._faults = small.faults
        self._presence = presence_of(small.states, small.faults, scenario)
        self._controllers = list(_controllers(small.states))

    @property
    def knows_controllers(self) -> bool:
        return bool(self._controllers)

    def unhindered_intervals(self, span: Span, lasted: Interval) -> Iterator[Interval]:
        """The parts of a state's time in which nothing hinders its leader."""
        busy = [*self._absences(broker_path(span.leader), lasted)]
        busy += self._absences(CONTROLLER, lasted)
        for fault in self._faults:
            acted = acting_interval(fault)
            if has_any(fault, _LASTING):
                busy.append(Interval(acted.begin_ns, FOREVER_NS))
            elif has_only(fault, _HARMLESS):
                continue
            elif self._spares_leader(fault, span.leader, acted):
                busy += [Interval(at_ns, at_ns) for at_ns in (acted.begin_ns, acted.end_ns)]
            else:
                busy.append(acted)
        yield from undisturbed_between(busy, lasted.begin_ns, lasted.end_ns)

    def is_clock_moved(self, leader: int, until: Interval) -> bool:
        return any(
            fault["begin_ns"] < until.end_ns and f"b{leader}" in targets_of(fault)
            for fault in self._faults
            if has_any(fault, {Effect.MOVES_CLOCKS})
        )

    def _absences(self, path: str, lasted: Interval) -> Iterator[Interval]:
        """The times at which a broker or controller was not registered, and the moments of its
        registrations. Empty where the evidence contains no registration."""
        stays = self._presence.get(path, ())
        if stays:
            yield from undisturbed_between(stays, lasted.begin_ns, lasted.end_ns)
            yield from (Interval(stay.begin_ns, stay.begin_ns) for stay in stays)

    def _spares_leader(self, fault: Row, leader: int, acted: Interval) -> bool:
        """Whether a fault affects only brokers that neither led nor were the controller, or only
        links towards the leader, which needs no requests of other brokers."""
        if not has_only(fault, MAKES_UNAVAILABLE | _HARMLESS):
            return False
        central = {leader} | {
            controller for term, controller in self._controllers if term.meets(acted)
        }

        def is_other_broker(name: str) -> bool:
            return bool(BROKER.fullmatch(name)) and node_id(name) not in central

        if not has_any(fault, {Effect.CUTS_LINKS}):
            return all(map(is_other_broker, targets_of(fault)))
        return all(
            (BROKER.fullmatch(source) and end == f"b{leader}")
            or is_other_broker(source)
            or is_other_broker(end)
            for source, end in links_of(fault)
        )


def _controllers(states: Sequence[Row]) -> Iterator[tuple[Interval, int]]:
    """Each controller and its time."""
    rows = [row for row in states if row["path"] == CONTROLLER]
    rows.sort(key=lambda row: int(row["zxid"]))
    for row, after in zip_longest(rows, rows[1:]):
        if row["controller"] is not None:
            end_ns = after["at_ns"] if after else FOREVER_NS
            yield Interval(row["at_ns"], end_ns), row["controller"]
