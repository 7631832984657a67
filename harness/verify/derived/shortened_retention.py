"""A temporarily shorter `retention.ms` of a topic."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import zip_longest

from urteil.chaos.effects import Effect
from urteil.harness.scenario import TopicFact
from urteil.harness.verify.derived.fault_effects import has_only
from urteil.harness.verify.derived.impact import acting_interval
from urteil.harness.verify.derived.intervals import Interval
from urteil.harness.verify.derived.retention_promises import changes
from urteil.harness.verify.derived.topic_changes import PROPAGATED_NS
from urteil.harness.verify.evidence import Row
from urteil.harness.verify.limits import FOREVER_NS

RETENTION, SEGMENT = "retention.ms", "segment.ms"
UNKNOWN: Row = dict.fromkeys(("short_ns", "short_segment_ns", "short_from_ns", "short_until_ns"))


def shortened_columns(
    topic: TopicFact | None, ops: Iterable[Row], faults: Iterable[Row], end_ns: int
) -> Row:
    """Columns of the derived table `partitions`: the last `retention.ms` and `segment.ms`, in ns,
    that one act set together, from when they had reached every broker until they were changed
    again. Null where no act set them, an act was not acknowledged, or a fault of another kind acted
    meanwhile."""
    acts = [
        (op, changes(op))
        for op in sorted(ops, key=lambda op: int(op["invoke_ns"] or 0))
        if topic is not None and op["subject"] == topic.name and RETENTION in changes(op)
    ]
    if any(op["outcome"] != "ok" or op["complete_ns"] is None for op, _ in acts):
        return UNKNOWN
    columns = UNKNOWN
    for (op, changed), after in zip_longest(acts, acts[1:]):
        until_ns = end_ns if after is None else after[0]["invoke_ns"]
        lasted = Interval(op["invoke_ns"], until_ns)
        others = [
            fault
            for fault in faults
            if not has_only(fault, {Effect.SHORTENS_RETENTION})
            and acting_interval(fault).meets(lasted)
        ]
        short_ns, segment_ns = (_ns(changed.get(name)) for name in (RETENTION, SEGMENT))
        if None not in (short_ns, segment_ns) and not others:
            columns = {"short_ns": short_ns, "short_segment_ns": segment_ns}
            columns |= {
                "short_from_ns": op["complete_ns"] + PROPAGATED_NS,
                "short_until_ns": until_ns,
            }
    return columns


def _ns(change: tuple[str | None, str | None] | None) -> int | None:
    """The new value of a setting in ms, in ns; None where it is not a valid time."""
    value = "" if change is None else str(change[1])
    ms = int(value) if value.isdecimal() else FOREVER_NS
    return ms * 1_000_000 if ms < FOREVER_NS // 1_000_000 else None
