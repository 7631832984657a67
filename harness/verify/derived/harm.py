"""Records that faults destroyed on replicas' disks, and the losses that this permits.

A fault that destroys records (a power cut, an emptied disk) lists them in its row: `harm`, JSON
`{"at_ns": t, "brokers": {"b1": {"topic-0": [low, high]}}}`, offsets from `low` on and below `high`,
null for the log's end. The damage was complete at `at_ns`.

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
    """Offsets [low, high) of one replica that a fault destroyed; the fault was healed at
    `until_ns`."""

    broker: int
    at_ns: int
    until_ns: int
    low: int
    high: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """From `at_ns` until `until_ns` no in-sync replica had the offsets from `floor` on."""

    at_ns: int
    until_ns: int
    floor: int


def harms(faults: Iterable[Row], topic: str, partition: int) -> list[Harm]:
    """The offsets of one partition that the run's faults destroyed, in order of time."""
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


def losses(spans: Sequence[Span], partition_harms: Sequence[Harm]) -> list[Loss]:
    """The times at which every member of the ISR had lost the end of its log, and the offsets from
    which.

    The lowest of their ends counts: any of them may be elected, and the others follow it. All of
    them have the records that are written later.
    """
    ends: dict[int, int] = {}
    isr: tuple[int, ...] = ()
    losses = []
    for event in _in_order(spans, partition_harms):
        if isinstance(event, Span):
            joined = [broker for broker in event.isr if broker not in isr]
            ends |= dict.fromkeys(joined, ends.get(event.leader, NO_OFFSET))
            isr = event.isr or isr
            continue
        ends[event.broker] = min(ends.get(event.broker, NO_OFFSET), event.low)
        remaining = [ends.get(member, NO_OFFSET) for member in isr]
        if remaining and max(remaining) < NO_OFFSET:
            losses.append(Loss(at_ns=event.at_ns, until_ns=event.until_ns, floor=min(remaining)))
            ends = {}
    return losses


def flushed_ns(
    spans: Sequence[Span], partition_harms: Sequence[Harm], within_ns: int | None
) -> int | None:
    """The time up to which acknowledged records had to be on all in-sync disks that lost their
    tails, for logs flushed `within_ns`. None where that bound is not known, disks were damaged
    several times, or the ISR changed in that time: a new member writes its log again."""
    lost = losses(spans, partition_harms)
    if within_ns is None or len(lost) != 1:
        return None
    bound_ns = lost[0].at_ns - within_ns
    steady = any(span.begin_ns <= bound_ns and lost[0].at_ns < span.end_ns for span in spans)
    return bound_ns if steady else None


def _in_order(spans: Sequence[Span], partition_harms: Sequence[Harm]) -> list[Span | Harm]:
    """Versions of the state, and losses of a log's end, in order of time."""
    tails: list[Span | Harm] = [harm for harm in partition_harms if harm.high == NO_OFFSET]
    return sorted([*spans, *tails], key=_moment)


def _moment(event: Span | Harm) -> int:
    return event.begin_ns if isinstance(event, Span) else event.at_ns


def with_losses(floors: Sequence[Floor], lost: Sequence[Loss]) -> list[Floor]:
    """`floors` with the lowest loss after each time of sending, split where that changes."""
    split: list[Floor] = []
    for floor in floors:
        edges = sorted({loss.at_ns for loss in lost if floor.from_ns < loss.at_ns < floor.to_ns})
        begins, ends = [floor.from_ns, *edges], [*edges, floor.to_ns]
        for from_ns, to_ns in zip(begins, ends, strict=True):
            low = min((loss.floor for loss in lost if loss.at_ns > from_ns), default=NO_OFFSET)
            split.append(replace(floor, from_ns=from_ns, to_ns=to_ns, lost_floor=low))
    return split
