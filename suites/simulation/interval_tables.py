"""Derived tables of intervals in which no fault disturbed a partition and its clients.

The lab derives the same tables from faults and their declared effects (`harness/verify/derived`),
with margins for a busy host. The simulation records every disturbance, and its host is never busy:
the bounds follow from the brokers' settings.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from urteil.harness.verify.derived.intervals import Interval, undisturbed_between
from urteil.harness.verify.limits import FOREVER_NS, SECOND_NS
from urteil.suites.simulation.client import CLIENT_TIMEOUT_MS, CONNECT_MS
from urteil.suites.simulation.cluster import BROKERS, PROPERTIES, process
from urteil.suites.simulation.disturbances import CUT, SLOW, Disturbance
from urteil.suites.simulation.evidence import Evidence, Place, states_of
from urteil.suites.simulation.history import Answer, Poll
from urteil.suites.simulation.lookups import BEGINS_S
from urteil.suites.simulation.readers import WAIT_MS

Rows = list[dict[str, Any]]

CONTROLLER, REGISTRATIONS = "/controller", "/brokers/ids/"
FRESH_METADATA_MS = CLIENT_TIMEOUT_MS + CONNECT_MS
"""The longest time in which a client finds the leader after a request timed out: the first broker
that it asks may be cut off."""
STALL_NS = (
    round(max(1.5 * float(PROPERTIES["replica.lag.time.max.ms"]),
              CLIENT_TIMEOUT_MS + FRESH_METADATA_MS)) * 1_000_000 + SECOND_NS
)  # fmt: skip
"""The longest time without an acknowledgement in a partition whose leader nothing disturbs: a
follower leaves the ISR within 1.5 x replica.lag.time.max.ms, and a client finds the leader after
a request timed out."""
SETTLES_NS = SECOND_NS
"""After an election, the time in which clients may still look up the leader."""
MIN_COUNT = 10
"""The least number of answers by which a client is judged."""
LATE_SEND_NS = SECOND_NS // 2
LATE_FETCH_NS = WAIT_MS * 1_000_000 // 2


def interval_tables(evidence: Evidence, numbers: Mapping[Place, int]) -> dict[str, Rows]:
    """The tables by name. `numbers` has the partitions that are judged."""
    return {
        "windows": [*_windows(evidence)],
        "views": [*_views(evidence, numbers)],
        "writable_intervals": [*_writable(evidence, numbers)],
        "prompt_sends": [*_prompt_sends(evidence, numbers)],
        "prompt_reads": [*_prompt_reads(evidence, numbers)],
        "undisturbed_intervals": [*_lookups_of_ends(evidence, numbers)],
    }


def _windows(evidence: Evidence) -> Iterator[dict[str, Any]]:
    """The times of all disturbances, merged."""
    merged: list[Interval] = []
    for each in sorted(map(_interval, evidence.disturbances), key=lambda each: each.begin_ns):
        if merged and each.begin_ns <= merged[-1].end_ns:
            merged[-1] = Interval(merged[-1].begin_ns, max(merged[-1].end_ns, each.end_ns))
        else:
            merged.append(each)
    for each in merged:
        yield {"begin_ns": each.begin_ns, "end_ns": each.end_ns, "ended_broker": None}


def _views(evidence: Evidence, numbers: Mapping[Place, int]) -> Iterator[dict[str, Any]]:
    """The answers of brokers to Metadata."""
    for view in evidence.history.views:
        if (view.topic, view.partition) in numbers:
            yield {
                "p": numbers[view.topic, view.partition], "broker": view.broker,
                "at_ns": _ns(view.at_s), "leader": view.leader,
                "leader_epoch": view.leader_epoch, "isr_size": view.isr_size,
            }  # fmt: skip


def _prompt_sends(evidence: Evidence, numbers: Mapping[Place, int]) -> Iterator[dict[str, Any]]:
    """Each producer without transactions and undisturbed interval of a partition."""
    clients = sorted({send.client for send in evidence.history.sends if send.txn is None})
    for place, p in numbers.items():
        for calm, _ in _calm(evidence, place):
            for client in clients:
                yield _prompt_row(client, p, calm, LATE_SEND_NS)


def _prompt_reads(evidence: Evidence, numbers: Mapping[Place, int]) -> Iterator[dict[str, Any]]:
    """Each reader of all records and undisturbed interval of a partition in which it fetched from
    the leader only. A follower has records later than they are acknowledged (KIP-392)."""
    polls_of: dict[tuple[str, Place], list[Poll]] = defaultdict(list)
    final = {name for name, _ in evidence.swept_s}
    for poll in evidence.history.polls:
        if poll.client not in final and poll.client not in evidence.history.readers_of_committed:
            polls_of[poll.client, (poll.topic, poll.partition)].append(poll)
    for (client, place), polls in polls_of.items():
        for calm, leader in _calm(evidence, place) if place in numbers else ():
            if all(
                poll.node == leader
                for poll in polls
                if calm.begin_ns <= _ns(poll.complete_s) and _ns(poll.invoke_s) <= calm.end_ns
            ):
                yield _prompt_row(client, numbers[place], calm, LATE_FETCH_NS)


def _lookups_of_ends(evidence: Evidence, numbers: Mapping[Place, int]) -> Iterator[dict[str, Any]]:
    """Each client that looked up the end of a partition after the recovery, as a new reader with
    auto.offset.reset=latest does, and the interval in which it did. Without an answer it receives
    nothing."""
    asked: dict[tuple[str, Place], list[Answer]] = defaultdict(list)
    for answer in evidence.history.answers:
        if answer.query == "latest" and answer.invoke_s >= evidence.promises.calm_s:
            asked[answer.client, (answer.topic, answer.partition)].append(answer)
    for (client, place), answers in asked.items():
        begin_ns, end_ns = _ns(answers[0].invoke_s), _ns(answers[-1].complete_s)
        if place in numbers and end_ns - begin_ns >= BEGINS_S * SECOND_NS:
            yield {
                "p": numbers[place], "name": client, "kind": "consumer", "reached": 0,
                "from_ns": begin_ns, "to_ns": end_ns, "bound_ns": end_ns - begin_ns, "polled": True,
                "recent_progress": any(answer.error is None for answer in answers),
            }  # fmt: skip


def _prompt_row(client: str, p: int, calm: Interval, late_ns: int) -> dict[str, Any]:
    return {
        "client": client, "session": 0, "p": p, "from_ns": calm.begin_ns, "to_ns": calm.end_ns,
        "late_ns": late_ns, "min_count": MIN_COUNT,
    }  # fmt: skip


def _calm(evidence: Evidence, place: Place) -> Iterator[tuple[Interval, int]]:
    """The undisturbed intervals after the recovery in which one broker led a partition, with that
    broker."""
    hindered = [*map(_interval, evidence.disturbances)]
    for span, state in _spans(evidence, place):
        begin_ns = max(span.begin_ns + SETTLES_NS, _ns(evidence.promises.calm_s) + SETTLES_NS)
        for calm in undisturbed_between(hindered, begin_ns, span.end_ns):
            if calm.end_ns > calm.begin_ns:
                yield calm, state["leader"]


def _writable(evidence: Evidence, numbers: Mapping[Place, int]) -> Iterator[dict[str, Any]]:
    """The intervals of at least STALL_NS in which nothing disturbed the leader of a partition."""
    controllers = [*_controllers(evidence)]
    for place, p in numbers.items():
        for span, state in _spans(evidence, place):
            leader = state["leader"]
            if leader < 0 or len(state["isr"]) < evidence.min_isr:
                continue
            busy = [*_absences(evidence, f"{REGISTRATIONS}{leader}", span)]
            busy += _absences(evidence, CONTROLLER, span)
            for disturbance in evidence.disturbances:
                busy += _disturbed_times(disturbance, leader, controllers)
            for free in undisturbed_between(busy, span.begin_ns, span.end_ns):
                if free.end_ns - free.begin_ns >= STALL_NS:
                    yield {
                        "p": p, "from_ns": free.begin_ns, "to_ns": free.end_ns,
                        "bound_ns": STALL_NS, "leader": leader, "wall_clock": 0,
                    }  # fmt: skip


def _disturbed_times(
    disturbance: Disturbance, leader: int, controllers: list[tuple[Interval, int]]
) -> list[Interval]:
    """The time of a disturbance of the leader or the controller, also of a cut between the
    controller and another broker, which returns outdated leaders to clients. Of any other broker,
    the moments of its begin and its end, at which the ISR changes."""
    acted = _interval(disturbance)
    active = {process(controller) for office, controller in controllers if office.meets(acted)}
    ends, brokers = {*disturbance.ends}, {process(broker) for broker in BROKERS}
    if disturbance.kind == SLOW:
        return [acted]
    if disturbance.kind == CUT and ends <= brokers:
        spares_both = not ends & active
    elif disturbance.kind == CUT and not ends & brokers:
        spares_both = False
    else:
        spares_both = not ends & {process(leader), *active}
    return [Interval(at, at) for at in (acted.begin_ns, acted.end_ns)] if spares_both else [acted]


def _spans(evidence: Evidence, place: Place) -> Iterator[tuple[Interval, dict[str, Any]]]:
    """The states of a partition, each with its interval."""
    states = [
        (_ns(change.at_s), state)
        for where, change, state in states_of(evidence.changes)
        if where == place
    ]
    ends = [*(at_ns for at_ns, _ in states[1:]), _ns(evidence.promises.ends_s)]
    for (at_ns, state), end_ns in zip(states, ends, strict=True):
        yield Interval(at_ns, max(at_ns, end_ns)), state


def _absences(evidence: Evidence, path: str, span: Interval) -> Iterator[Interval]:
    """The times in which a znode did not exist, and the moments of its creation."""
    stays: list[Interval] = []
    came_ns: int | None = None
    for change in evidence.changes:
        if change.path != path:
            continue
        if came_ns is not None:
            stays.append(Interval(came_ns, _ns(change.at_s)))
        came_ns = None if change.data is None else _ns(change.at_s)
    if came_ns is not None:
        stays.append(Interval(came_ns, FOREVER_NS))
    yield from undisturbed_between(stays, span.begin_ns, span.end_ns)
    yield from (Interval(stay.begin_ns, stay.begin_ns) for stay in stays)


def _controllers(evidence: Evidence) -> Iterator[tuple[Interval, int]]:
    """The controllers with their intervals."""
    versions = [change for change in evidence.changes if change.path == CONTROLLER]
    ends = [*(_ns(change.at_s) for change in versions[1:]), FOREVER_NS]
    for change, end_ns in zip(versions, ends, strict=False):
        if change.data is not None:
            yield Interval(_ns(change.at_s), end_ns), json.loads(change.data).get("brokerid", -1)


def _interval(disturbance: Disturbance) -> Interval:
    return Interval(_ns(disturbance.begin_s), _ns(disturbance.end_s))


def _ns(seconds: float) -> int:
    return FOREVER_NS if seconds == float("inf") else round(seconds * 1e9)
