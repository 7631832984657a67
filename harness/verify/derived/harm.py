"""Records that faults destroyed on replicas' disks, and the loss that this permits.

A fault that destroys records (a power cut, an emptied disk) lists them in its row: `harm`, JSON
`{"at_ns": t, "brokers": {"b1": {"topic-0": [low, high]}}}`, offsets from `low` on and below
`high`, null for the log's end. The damage was complete at `at_ns`.

A loss is permitted where no in-sync replica still had the record, also when the disks were damaged
one after another: a replica that returns to the ISR has all records of its leader again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from urteil.harness.verify.derived.state_spans import Floor, Span
from urteil.harness.verify.evidence import Row
from urteil.harness.verify.limits import FOREVER_NS, NO_OFFSET


@dataclass(frozen=True, slots=True, kw_only=True)
class Harm:
    """Offsets [low, high) of one replica that a fault destroyed; it was healed at `until_ns`."""

    broker: int
    at_ns: int
    until_ns: int
    low: int
    high: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """At `at_ns` no in-sync replica had offsets from `floor` on any more, until `until_ns`."""

    at_ns: int
    until_ns: int
    floor: int


def harms(faults: Iterable[Row], topic: str, partition: int) -> list[Harm]:
    """What the run's faults destroyed of one partition, in order of time."""
    harm_list = []
    for fault in faults:
        report: Mapping[str, Any] = json.loads(fault.get("harm") or "{}")
        for node, logs in report.get("brokers", {}).items():
            low, high = logs.get(f"{topic}-{partition}", (None, None))
            if low is not None:
                harm_list.append(_harm(node, low, high, int(report["at_ns"]), fault))
    return sorted(harm_list, key=lambda harm: (harm.at_ns, harm.broker))


def _harm(node: str, low: int, high: int | None, at_ns: int, fault: Row) -> Harm:
    until_ns = fault["end_ns"] or FOREVER_NS
    return Harm(
        broker=int(node.removeprefix("b")),
        at_ns=at_ns,
        until_ns=max(at_ns, until_ns),
        low=low,
        high=NO_OFFSET if high is None else high,
    )


def losses(spans: Sequence[Span], hurt: Sequence[Harm]) -> list[Loss]:
    """When every member of the ISR had lost the end of its log, and from where on.

    The lowest of their ends counts: any of them may be elected, and the others follow it. What is
    written after that, all of them have.
    """
    held: dict[int, int] = {}
    isr: tuple[int, ...] = ()
    losses = []
    for what in _in_order(spans, hurt):
        if isinstance(what, Span):
            joined = [broker for broker in what.isr if broker not in isr]
            held |= dict.fromkeys(joined, held.get(what.leader, NO_OFFSET))
            isr = what.isr or isr
            continue
        held[what.broker] = min(held.get(what.broker, NO_OFFSET), what.low)
        left = [held.get(member, NO_OFFSET) for member in isr]
        if left and max(left) < NO_OFFSET:
            losses.append(Loss(at_ns=what.at_ns, until_ns=what.until_ns, floor=min(left)))
            held = {}
    return losses


def flushed_ns(spans: Sequence[Span], hurt: Sequence[Harm], within_ns: int | None) -> int | None:
    """The time up to which acknowledged records had to be on all in-sync disks that lost their
    tails, for logs flushed `within_ns`. None where that bound is not known, disks were damaged
    several times, or the ISR changed in that time: a new member writes its log anew."""
    lost = losses(spans, hurt)
    if within_ns is None or len(lost) != 1:
        return None
    sure_ns = lost[0].at_ns - within_ns
    steady = any(span.begin_ns <= sure_ns and lost[0].at_ns < span.end_ns for span in spans)
    return sure_ns if steady else None


def _in_order(spans: Sequence[Span], hurt: Sequence[Harm]) -> list[Span | Harm]:
    """Versions of the state and losses of a log's end, as they came."""
    ends: list[Span | Harm] = [harm for harm in hurt if harm.high == NO_OFFSET]
    return sorted([*spans, *ends], key=_moment)


def _moment(what: Span | Harm) -> int:
    return what.begin_ns if isinstance(what, Span) else what.at_ns


def with_losses(floors: Sequence[Floor], lost: Sequence[Loss]) -> list[Floor]:
    """`found` with the lowest loss that came after a send, split where that changes."""
    split: list[Floor] = []
    for floor in floors:
        edges = sorted({loss.at_ns for loss in lost if floor.from_ns < loss.at_ns < floor.to_ns})
        begins, ends = [floor.from_ns, *edges], [*edges, floor.to_ns]
        for from_ns, to_ns in zip(begins, ends, strict=True):
            low = min((loss.floor for loss in lost if loss.at_ns > from_ns), default=NO_OFFSET)
            split.append(replace(floor, from_ns=from_ns, to_ns=to_ns, lost_floor=low))
    return split
