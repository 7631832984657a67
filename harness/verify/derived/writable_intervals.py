"""Times in which a partition must acknowledge records, whatever is disturbed beside it: rows of the
table `writable_intervals`.

Its leader is registered and stays, the ISR is as large as acks=all requires, a controller is in
office, and no fault acts on the leader, on the controller, on metadata nodes or on the clients'
links to them. Brokers beside may be dead, paused or cut off: their replicas leave the ISR after
`replica.lag.time.max.ms`. Each beginning and end of such a fault, and each new state, begins the
time anew. A partition may stand still for the longer one of one and a half times that lag and a
client's time to give up a request, and SLACK_NS more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from urteil.chaos.effects import Effect
from urteil.chaos.faults.base.fault import URTEIL, target_kind
from urteil.chaos.topology import node_id
from urteil.harness.scenario import IMPORTED, RunFacts, Scenario
from urteil.harness.topic_settings import setting
from urteil.harness.verify.derived.fault_effects import ENDS_NODES, OF_DISKS, has_any, has_only
from urteil.harness.verify.derived.impact import BROKER, Stretch, acting_stretch, load_of
from urteil.harness.verify.derived.presence import CONTROLLER, broker_path, presence_of
from urteil.harness.verify.derived.small_evidence import SmallEvidence
from urteil.harness.verify.derived.state_spans import Span
from urteil.harness.verify.derived.undisturbed_intervals import undisturbed_between
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
"""Effects that hinder no partition and no producer that lives."""
_OF_BROKERS = ENDS_NODES | {Effect.PAUSES_NODES, Effect.CUTS_LINKS}
"""Effects that keep brokers from taking part."""
_LASTING = OF_DISKS | {Effect.SETS_QUOTAS, Effect.CHANGES_MIN_ISR}
"""Effects that may delay records after their end, too."""


def writable_rows(
    small: SmallEvidence, scenario: Scenario, facts: RunFacts, partitions: Sequence[Row]
) -> list[Row]:
    """A partition of the run and such a time, if it is long enough for a statement. `wall_clock`
    says whether the leader's clock had been moved, of a broker that measures lag by it, as Apache
    Kafka does (class `Partition`, `isFollowerOutOfSync`)."""
    situation = _Situation(small)
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
            lasted = Stretch(max(span.begin_ns, load.begin_ns), min(span.end_ns, load.end_ns))
            for free in situation.unhindered_stretches(span, lasted):
                if free.end_ns - free.begin_ns >= bound_ns:
                    is_moved = counts_wall_clock and situation.is_clock_moved(span.leader, free)
                    rows.append(
                        {"p": part["p"], "from_ns": free.begin_ns, "to_ns": free.end_ns}
                        | {"bound_ns": bound_ns, "leader": span.leader}
                        | {"wall_clock": int(is_moved)}
                    )
    return rows


def stall_bound_ns(scenario: Scenario) -> int:
    """How long a partition may stand still that nothing hinders."""
    lag_ms = float(setting(None, scenario, "replica.lag.time.max.ms"))
    noticed_ns = scenario.workload.request_timeout_ms * _MS_NS + _FRESH_METADATA_NS
    return max(int(1.5 * lag_ms * _MS_NS), noticed_ns) + SLACK_NS


class _Situation:
    """The faults of a run, and the brokers and controllers that were there."""

    def __init__(self, small: SmallEvidence) -> None:
        self._faults = small.faults
        self._presence = presence_of(small.states)
        self._controllers = list(_controllers(small.states))

    @property
    def knows_controllers(self) -> bool:
        return bool(self._controllers)

    def unhindered_stretches(self, span: Span, lasted: Stretch) -> Iterator[Stretch]:
        """The parts of the time of a state in which nothing hinders its leader."""
        if lasted.begin_ns >= lasted.end_ns:
            return
        busy = [*self._absences(broker_path(span.leader), lasted)]
        busy += self._absences(CONTROLLER, lasted)
        for fault in self._faults:
            acted = acting_stretch(fault)
            if has_any(fault, _LASTING):
                busy.append(Stretch(acted.begin_ns, FOREVER_NS))
            elif has_only(fault, _HARMLESS):
                continue
            elif self._is_beside(fault, span.leader, acted):
                busy += [Stretch(at_ns, at_ns) for at_ns in (acted.begin_ns, acted.end_ns)]
            else:
                busy.append(acted)
        yield from undisturbed_between(busy, lasted.begin_ns, lasted.end_ns)

    def is_clock_moved(self, leader: int, until: Stretch) -> bool:
        return any(
            fault["begin_ns"] < until.end_ns and f"b{leader}" in targets_of(fault)
            for fault in self._faults
            if has_any(fault, {Effect.MOVES_CLOCKS})
        )

    def _absences(self, path: str, lasted: Stretch) -> Iterator[Stretch]:
        """When a broker or controller was not there, and the moments in which its successor came.
        Nothing where the evidence has none at all."""
        stays = self._presence.get(path, ())
        if stays:
            yield from undisturbed_between(stays, lasted.begin_ns, lasted.end_ns)
            yield from (Stretch(stay.begin_ns, stay.begin_ns) for stay in stays)

    def _is_beside(self, fault: Row, leader: int, acted: Stretch) -> bool:
        """Whether a fault keeps only brokers from taking part that neither led nor were the
        controller, or from reaching the leader, which needs no requests of others."""
        if not has_only(fault, _OF_BROKERS | _HARMLESS):
            return False
        central = {leader} | {
            controller for office, controller in self._controllers if office.meets(acted)
        }

        def is_beside(name: str) -> bool:
            return bool(BROKER.fullmatch(name)) and node_id(name) not in central

        if not has_any(fault, {Effect.CUTS_LINKS}):
            return all(map(is_beside, targets_of(fault)))
        return all(
            (BROKER.fullmatch(source) and end == f"b{leader}")
            or is_beside(source)
            or is_beside(end)
            for source, end in links_of(fault)
        )


def _controllers(states: Sequence[Row]) -> Iterator[tuple[Stretch, int]]:
    """Who was the controller, from when to when."""
    rows = [row for row in states if row["path"] == CONTROLLER]
    rows.sort(key=lambda row: int(row["zxid"]))
    for row, after in zip_longest(rows, rows[1:]):
        if row["controller"] is not None:
            end_ns = after["at_ns"] if after else FOREVER_NS
            yield Stretch(row["at_ns"], end_ns), row["controller"]
