"""Partitions without a leader although an eligible replica lives: a member of the last ISR, or any
replica where unclean elections are allowed, from the time on when they are."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from urteil.chaos.effects import Effect
from urteil.harness.scenario import Scenario
from urteil.harness.verify.derived.fault_effects import ENDS_NODES, has_only
from urteil.harness.verify.derived.impact import Stretch, acting_stretch
from urteil.harness.verify.derived.partitions import setting
from urteil.harness.verify.derived.small_evidence import SmallEvidence
from urteil.harness.verify.derived.topic_changes import UNCLEAN
from urteil.harness.verify.evidence import Row, targets_of
from urteil.harness.verify.limits import FOREVER_NS, SECOND_NS

KIND = "leaderless"
LIMIT_S = 15.0
"""So long a controller may take that nothing hinders."""
HARMLESS = ENDS_NODES | {Effect.ALLOWS_UNCLEAN_ELECTIONS}
"""Effects of faults that hinder no broker but those that they end."""
_IDS, _CONTROLLER = "/brokers/ids/", "/controller"


def leaderless(small: SmallEvidence, scenario: Scenario, load_ns: int) -> Iterator[Row]:
    """Rows of the table `cluster_tasks`: of each stretch of the load in which a partition had no
    leader, the longest part in which one and the same broker could have led, one and the same
    controller was in office, and no fault acted but on others."""
    states = sorted(small.states, key=lambda row: int(row["zxid"]))
    offices = list(_existence(states, _CONTROLLER))
    assigned = {(row["path"], row["version"]): row["replicas"] for row in states}
    for key, p in small.numbers.items():
        if key in small.gone or key[0] not in small.topics:
            continue
        for span in small.spans.get(p, []):
            if span.leader >= 0:
                continue
            replicas = json.loads(assigned.get((span.path, span.version)) or "[]")
            lasted = Stretch(span.begin_ns, min(span.end_ns, load_ns))
            best: tuple[int, int, Stretch] | None = None
            for broker in sorted({*span.isr, *replicas}):
                since = _may_lead(small, scenario, key[0], span.topic, in_sync=broker in span.isr)
                for part in _shared_stretches(small, states, broker, lasted, since, offices):
                    if best is None or part.end_ns - part.begin_ns > best[0]:
                        best = (part.end_ns - part.begin_ns, broker, part)
            if best is not None:
                yield _row(p, f"{span.topic}-{key[1]}", *best)


def _row(p: int, place: str, lasted_ns: int, broker: int, part: Stretch) -> Row:
    late = lasted_ns > LIMIT_S * SECOND_NS
    return {
        "kind": KIND, "p": p, "from_ns": part.begin_ns, "to_ns": part.end_ns,
        "asked": f"Broker {broker} could have led {place}",
        "stands": "nobody led it" if late else None, "limit_s": LIMIT_S, "late": int(late),
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
    states: Sequence[Row],
    broker: int,
    lasted: Stretch,
    since: Iterable[Stretch],
    offices: Iterable[Stretch],
) -> Iterator[Stretch]:
    """Where all of these lasted and no fault acted."""
    busy = [
        acting_stretch(fault)
        for fault in small.faults
        if fault["acted"]
        and not (has_only(fault, HARMLESS) and f"b{broker}" not in targets_of(fault))
    ]
    for lived in _existence(states, f"{_IDS}{broker}"):
        for office in offices:
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


def _existence(states: Iterable[Row], path: str) -> Iterator[Stretch]:
    """When a node stood there, from each time that it was made to the next or to its end."""
    begin_ns = None
    for row in states:
        if row["path"] != path:
            continue
        if begin_ns is not None:
            yield Stretch(begin_ns, row["at_ns"])
        begin_ns = None if row["version"] == -1 else row["at_ns"]
    if begin_ns is not None:
        yield Stretch(begin_ns, FOREVER_NS)
