"""Partitions without a leader although an eligible replica lives: a member of the last ISR, or any
replica where unclean elections are allowed, from the time on when they are. A partition whose state
names a broker that has left is without a leader, too."""

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
from urteil.harness.verify.derived.impact import Stretch, acting_stretch
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
"""So long a controller may take that nothing hinders."""
BEHIND_S = 3.0
"""So long after another partition of the same leader a controller may elect one. It elects them
together."""
TOGETHER_NS = SECOND_NS
"""Elections that are this close are one."""
HARMLESS = ENDS_NODES | OF_CLIENTS | {Effect.ALLOWS_UNCLEAN_ELECTIONS}
"""Effects of faults that hinder no broker but those that they end."""


def leaderless(small: SmallEvidence, scenario: Scenario, load_ns: int) -> Iterator[Row]:
    """Rows of the table `cluster_tasks`: of each stretch of the load in which a partition had no
    leader, the longest part in which one and the same broker could have led, one and the same
    controller was in office, and no fault acted but on others."""
    states = sorted(small.states, key=lambda row: int(row["zxid"]))
    presence = presence_of(small.states)
    assigned = {(row["path"], row["version"]): row["replicas"] for row in states}
    for key, p in small.numbers.items():
        if key in small.gone or key[0] not in small.topics:
            continue
        for span in small.spans.get(p, []):
            replicas = json.loads(assigned.get((span.path, span.version)) or "[]")
            for lasted in _without_leader(span, presence, load_ns):
                best: tuple[int, int, Stretch] | None = None
                for broker in sorted({*span.isr, *replicas}):
                    in_sync = broker in span.isr
                    since = _may_lead(small, scenario, key[0], span.topic, in_sync=in_sync)
                    for part in _shared_stretches(small, presence, broker, lasted, since):
                        if best is None or part.end_ns - part.begin_ns > best[0]:
                            best = (part.end_ns - part.begin_ns, broker, part)
                if best is not None:
                    yield _row(p, f"{span.topic}-{key[1]}", *best)


def passed_over(small: SmallEvidence, load_ns: int) -> Iterator[Row]:
    """Rows of the table `cluster_tasks`, one for each partition whose leader left while others that
    it led got another leader: from their election to its own, or to the leader's return. Judged
    while a member of its ISR and one controller were there and no fault acted but on others. Not
    where a disk was ever hurt: its broker may not be able to lead."""
    if any(has_any(fault, OF_DISKS) for fault in small.faults):
        return
    states = sorted(small.states, key=lambda row: int(row["zxid"]))
    presence = presence_of(small.states)
    for departed, away in _departures(presence):
        if away.begin_ns >= load_ns:
            continue
        before_ns = away.begin_ns - TOGETHER_NS
        held = _led_by((row for row in states if row["at_ns"] <= before_ns), departed)
        news = (row for row in states if before_ns < row["at_ns"] < away.end_ns)
        elected = _next_leaders(news, held)
        for path, state in held.items():
            key = state["topic_id"], state["partition"]
            if key not in small.numbers or key in small.gone:
                continue
            to_ns = min(elected.get(path, away.end_ns), load_ns)
            others = [at_ns for place, at_ns in elected.items() if place != path]
            earlier = [at_ns for at_ns in others if at_ns < to_ns - TOGETHER_NS]
            since = Stretch(max([away.begin_ns, *earlier]), to_ns)
            if earlier:
                yield from _overtaken(small, presence, state, departed, since)
            elif others and path in elected:
                yield _overtaken_row(small, state, departed, Stretch(to_ns, to_ns), late=False)


def _departures(presence: Presence) -> Iterator[tuple[int, Stretch]]:
    """Each broker that left, from then to its return."""
    for path, stays in presence.items():
        if path.startswith(IDS):
            returns = [*(stay.begin_ns for stay in stays[1:]), FOREVER_NS]
            for stay, back_ns in zip(stays, returns, strict=True):
                if stay.end_ns < back_ns:
                    yield int(path.removeprefix(IDS)), Stretch(stay.end_ns, back_ns)


def _overtaken(
    small: SmallEvidence, presence: Presence, state: Row, departed: int, since: Stretch
) -> Iterator[Row]:
    """The longest part of a stretch, from its begin on, in which a member of the ISR could lead."""
    always = [Stretch(-FOREVER_NS, FOREVER_NS)]
    parts = [
        part
        for broker in json.loads(state["isr"] or "[]")
        for part in _shared_stretches(small, presence, broker, since, always)
        if part.begin_ns == since.begin_ns
    ]
    if parts:
        longest = max(parts, key=lambda part: part.end_ns)
        lasted_ns = longest.end_ns - longest.begin_ns
        late = lasted_ns > BEHIND_S * SECOND_NS
        yield _overtaken_row(small, state, departed, longest, late=late)


def _overtaken_row(
    small: SmallEvidence, state: Row, departed: int, part: Stretch, *, late: bool
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


def _next_leaders(news: Iterable[Row], held: Mapping[str, Row]) -> dict[str, int]:
    """When each of these partitions had another leader first, if it had one."""
    elected: dict[str, int] = {}
    for row in news:
        before = held.get(str(row["path"]))
        if before is not None and row["leader"] not in (None, -1, before["leader"]):
            elected.setdefault(str(row["path"]), row["at_ns"])
    return elected


def _without_leader(span: Span, presence: Presence, load_ns: int) -> Iterator[Stretch]:
    """When nobody led in the time of a version: all of it, or while its leader was away."""
    lasted = Stretch(span.begin_ns, min(span.end_ns, load_ns))
    if lasted.begin_ns >= lasted.end_ns:
        return
    led = presence.get(broker_path(span.leader), ())
    if span.leader < 0:
        yield lasted
    elif led and led[0].begin_ns <= lasted.begin_ns:
        yield from _subtract(led, lasted)


def _row(p: int, place: str, lasted_ns: int, broker: int, part: Stretch) -> Row:
    late = lasted_ns > LIMIT_S * SECOND_NS
    return {
        "kind": KIND, "p": p, "from_ns": part.begin_ns, "to_ns": part.end_ns,
        "task": f"Broker {broker} could have led {place}",
        "shortfall": "it had no leader" if late else None, "limit_s": LIMIT_S, "late": int(late),
    }  # fmt: skip


def _may_lead(
    small: SmallEvidence, scenario: Scenario, topic_id: str, topic: str, *, in_sync: bool
) -> list[Stretch]:
    """When a replica may lead: always where it was in sync, else while unclean elections were
    allowed for certain."""
    if in_sync or setting(small.topics[topic_id], scenario, UNCLEAN) == "true":
        return [Stretch(-FOREVER_NS, FOREVER_NS)]
    stretches: list[Stretch] = []
    for op in sorted(small.ops, key=lambda op: int(op["invoke_ns"] or 0)):
        config: Any = json.loads(op["after"] or "{}") if op["act"] == "config" else {}
        if op["subject"] != topic or UNCLEAN not in config:
            continue
        if stretches:
            stretches[-1] = Stretch(
                stretches[-1].begin_ns, min(stretches[-1].end_ns, op["invoke_ns"])
            )
        if config[UNCLEAN] == "true" and op["outcome"] == "ok" and op["complete_ns"] is not None:
            stretches.append(Stretch(op["complete_ns"], FOREVER_NS))
    return stretches


def _shared_stretches(
    small: SmallEvidence,
    presence: Presence,
    broker: int,
    lasted: Stretch,
    since: Iterable[Stretch],
) -> Iterator[Stretch]:
    """Where all of these lasted and no fault acted."""
    busy = [
        acting_stretch(fault)
        for fault in small.faults
        if fault["acted"]
        and not (has_only(fault, HARMLESS) and f"b{broker}" not in targets_of(fault))
    ]
    for lived in presence.get(broker_path(broker), ()):
        for office in presence.get(CONTROLLER, ()):
            for allowed in since:
                shared = (lasted, lived, office, allowed)
                begin_ns = max(stretch.begin_ns for stretch in shared)
                end_ns = min(stretch.end_ns for stretch in shared)
                yield from _subtract(busy, Stretch(begin_ns, end_ns))


def _subtract(busy: Iterable[Stretch], stretch: Stretch) -> Iterator[Stretch]:
    begin_ns = stretch.begin_ns
    for other in sorted(busy, key=lambda other: other.begin_ns):
        if other.meets(Stretch(begin_ns, stretch.end_ns)):
            if other.begin_ns > begin_ns:
                yield Stretch(begin_ns, other.begin_ns)
            begin_ns = max(begin_ns, other.end_ns)
    if begin_ns < stretch.end_ns:
        yield Stretch(begin_ns, stretch.end_ns)
