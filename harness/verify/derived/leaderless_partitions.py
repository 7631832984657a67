"""Partitions without a leader although an eligible replica lives: a member of the last ISR, or any
replica while unclean elections are enabled. A partition whose state names a broker that has left is
without a leader, too."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from urteil.chaos.effects import Effect
from urteil.harness.scenario import Scenario
from urteil.harness.topic_settings import setting
from urteil.harness.verify.derived.fault_effects import (
    ENDS_NODES,
    OF_CLIENTS,
    OF_DISKS,
    has_any,
    has_only,
)
from urteil.harness.verify.derived.impact import acting_interval
from urteil.harness.verify.derived.intervals import Interval, undisturbed_between
from urteil.harness.verify.derived.presence import (
    CONTROLLER,
    IDS,
    Presence,
    broker_path,
    presence_of,
)
from urteil.harness.verify.derived.small_evidence import SmallEvidence
from urteil.harness.verify.derived.state_spans import Span
from urteil.harness.verify.derived.topic_changes import UNCLEAN
from urteil.harness.verify.evidence import Row, targets_of
from urteil.harness.verify.limits import FOREVER_NS, SECOND_NS

KIND, PASSED_OVER = "leaderless", "passed over"
LIMIT_S = 15.0
"""The time that an unhindered controller may need for an election."""
BEHIND_S = 3.0
"""The time by which an election may follow that of another partition of the same former leader. The
controller elects their leaders together."""
TOGETHER_NS = SECOND_NS
"""Elections within this time count as one."""
HARMLESS = ENDS_NODES | OF_CLIENTS | {Effect.ALLOWS_UNCLEAN_ELECTIONS}
"""Effects of faults that hinder no broker except those that they end."""


def leaderless_rows(small: SmallEvidence, scenario: Scenario, load_ns: int) -> Iterator[Row]:
    """Rows of the table `cluster_tasks`, one for each interval of the load in which a partition had
    no leader. It names the longest part of the interval in which one broker could have led, one
    controller was active, and no fault acted on that broker."""
    states = sorted(small.states, key=lambda row: int(row["zxid"]))
    presence = presence_of(small.states, small.faults, scenario)
    assigned = {(row["path"], row["version"]): row["replicas"] for row in states}
    for key, p in small.numbers.items():
        if key in small.deleted or key[0] not in small.topics:
            continue
        for span in small.spans.get(p, []):
            replicas = json.loads(assigned.get((span.path, span.version)) or "[]")
            for lasted in _without_leader(span, presence, load_ns):
                best: tuple[int, int, Interval] | None = None
                for broker in sorted({*span.isr, *replicas}):
                    in_sync = broker in span.isr
                    since = _may_lead(small, scenario, key[0], span.topic, in_sync=in_sync)
                    for part in _shared_intervals(small, presence, broker, lasted, since):
                        if best is None or part.end_ns - part.begin_ns > best[0]:
                            best = (part.end_ns - part.begin_ns, broker, part)
                if best is not None:
                    yield _row(p, f"{span.topic}-{key[1]}", *best)


def passed_over_rows(small: SmallEvidence, scenario: Scenario, load_ns: int) -> Iterator[Row]:
    """Rows of the table `cluster_tasks`, one for each partition whose leader left while other
    partitions of that leader received a new one. The time is from their election to its own, or to
    the leader's return. It counts while a member of the ISR and one controller were alive and no
    fault acted on them. There are no rows where a fault damaged a disk: the disk's broker may be
    unable to lead."""
    if any(has_any(fault, OF_DISKS) for fault in small.faults):
        return
    states = sorted(small.states, key=lambda row: int(row["zxid"]))
    presence = presence_of(small.states, small.faults, scenario)
    for departed, away in _departures(presence):
        if away.begin_ns >= load_ns:
            continue
        before_ns = away.begin_ns - TOGETHER_NS
        led = _led_by((row for row in states if row["at_ns"] <= before_ns), departed)
        changes = (row for row in states if before_ns < row["at_ns"] < away.end_ns)
        elected = _next_leaders(changes, led)
        for path, state in led.items():
            key = state["topic_id"], state["partition"]
            if key not in small.numbers or key in small.deleted:
                continue
            to_ns = min(elected.get(path, away.end_ns), load_ns)
            others = [at_ns for place, at_ns in elected.items() if place != path]
            earlier = [at_ns for at_ns in others if at_ns < to_ns - TOGETHER_NS]
            since = Interval(max([away.begin_ns, *earlier]), to_ns)
            if earlier:
                yield from _longest_passed_over(small, presence, state, departed, since)
            elif others and path in elected:
                yield _passed_over_row(small, state, departed, Interval(to_ns, to_ns), late=False)


def _departures(presence: Presence) -> Iterator[tuple[int, Interval]]:
    """Each broker that left, and the time from then to its return."""
    for path, stays in presence.items():
        if path.startswith(IDS):
            returns = [*(stay.begin_ns for stay in stays[1:]), FOREVER_NS]
            for stay, back_ns in zip(stays, returns, strict=True):
                if stay.end_ns < back_ns:
                    yield int(path.removeprefix(IDS)), Interval(stay.end_ns, back_ns)


def _longest_passed_over(
    small: SmallEvidence, presence: Presence, state: Row, departed: int, since: Interval
) -> Iterator[Row]:
    """The longest part of an interval, from its begin on, in which a member of the ISR could
    lead."""
    always = [Interval(-FOREVER_NS, FOREVER_NS)]
    parts = [
        part
        for broker in json.loads(state["isr"] or "[]")
        for part in _shared_intervals(small, presence, broker, since, always)
        if part.begin_ns == since.begin_ns
    ]
    if parts:
        longest = max(parts, key=lambda part: part.end_ns)
        lasted_ns = longest.end_ns - longest.begin_ns
        late = lasted_ns > BEHIND_S * SECOND_NS
        yield _passed_over_row(small, state, departed, longest, late=late)


def _passed_over_row(
    small: SmallEvidence, state: Row, departed: int, part: Interval, *, late: bool
) -> Row:
    p = small.numbers[state["topic_id"], state["partition"]]
    place = f"{state['topic']}-{state['partition']}"
    return {
        "kind": PASSED_OVER, "p": p, "from_ns": part.begin_ns, "to_ns": part.end_ns,
        "task": f"Broker {departed} had left, other partitions that it led had another leader,"
        f" and {place} had an eligible replica in sync, too",
        "shortfall": "it had no leader" if late else None, "limit_s": BEHIND_S, "late": int(late),
    }  # fmt: skip


def _led_by(states: Iterable[Row], broker: int) -> dict[str, Row]:
    """The last states of the partitions that a broker led after these changes."""
    last = {str(row["path"]): row for row in states if row["partition"] is not None}
    return {path: row for path, row in last.items() if row["leader"] == broker}


def _next_leaders(changes: Iterable[Row], led: Mapping[str, Row]) -> dict[str, int]:
    """The time at which each of these partitions first had another leader, if it had one."""
    elected: dict[str, int] = {}
    for row in changes:
        before = led.get(str(row["path"]))
        if before is not None and row["leader"] not in (None, -1, before["leader"]):
            elected.setdefault(str(row["path"]), row["at_ns"])
    return elected


def _without_leader(span: Span, presence: Presence, load_ns: int) -> Iterator[Interval]:
    """The times of a version in which no broker led: all of it, or while its leader was not
    registered."""
    lasted = Interval(span.begin_ns, min(span.end_ns, load_ns))
    if lasted.begin_ns >= lasted.end_ns:
        return
    led = presence.get(broker_path(span.leader), ())
    if span.leader < 0:
        yield lasted
    elif led and led[0].begin_ns <= lasted.begin_ns:
        yield from undisturbed_between(led, lasted.begin_ns, lasted.end_ns)


def _row(p: int, place: str, lasted_ns: int, broker: int, part: Interval) -> Row:
    late = lasted_ns > LIMIT_S * SECOND_NS
    return {
        "kind": KIND, "p": p, "from_ns": part.begin_ns, "to_ns": part.end_ns,
        "task": f"Broker {broker} could have led {place}",
        "shortfall": "it had no leader" if late else None, "limit_s": LIMIT_S, "late": int(late),
    }  # fmt: skip


def _may_lead(
    small: SmallEvidence, scenario: Scenario, topic_id: str, topic: str, *, in_sync: bool
) -> list[Interval]:
    """The times in which a replica may lead: always if it was in sync, else while unclean elections
    were certainly enabled."""
    if in_sync or setting(small.topics[topic_id], scenario, UNCLEAN) == "true":
        return [Interval(-FOREVER_NS, FOREVER_NS)]
    intervals: list[Interval] = []
    for op in sorted(small.ops, key=lambda op: int(op["invoke_ns"] or 0)):
        config: Any = json.loads(op["after"] or "{}") if op["act"] == "config" else {}
        if op["subject"] != topic or UNCLEAN not in config:
            continue
        if intervals:
            intervals[-1] = Interval(
                intervals[-1].begin_ns, min(intervals[-1].end_ns, op["invoke_ns"])
            )
        if config[UNCLEAN] == "true" and op["outcome"] == "ok" and op["complete_ns"] is not None:
            intervals.append(Interval(op["complete_ns"], FOREVER_NS))
    return intervals


def _shared_intervals(
    small: SmallEvidence,
    presence: Presence,
    broker: int,
    lasted: Interval,
    since: Iterable[Interval],
) -> Iterator[Interval]:
    """The times that are in all of these intervals, and in which no fault acted."""
    busy = [
        acting_interval(fault)
        for fault in small.faults
        if fault["acted"]
        and not (has_only(fault, HARMLESS) and f"b{broker}" not in targets_of(fault))
    ]
    for lived in presence.get(broker_path(broker), ()):
        for term in presence.get(CONTROLLER, ()):
            for allowed in since:
                shared = (lasted, lived, term, allowed)
                begin_ns = max(interval.begin_ns for interval in shared)
                end_ns = min(interval.end_ns for interval in shared)
                yield from undisturbed_between(busy, begin_ns, end_ns)
