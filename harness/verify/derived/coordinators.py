"""Former coordinators of a group that may answer OffsetFetch because they have not learned of their
successor."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from urteil.harness.verify.derived.fault_effects import ENDS_NODES, OF_CLIENTS, has_only
from urteil.harness.verify.derived.impact import acting_interval
from urteil.harness.verify.derived.intervals import Interval
from urteil.harness.verify.derived.tables import Derived
from urteil.harness.verify.evidence import Row, nodes_of, targets_of
from urteil.harness.verify.internal_topics import OFFSETS_TOPIC

GRACE_NS = 10_000_000_000
"""The time after a change of leader, or after healing, in which the former leader may not know of
the change."""
SLACK_NS = 2_000_000_000
"""The tolerance between ZooKeeper's clock, which times leaderships, and the lab's, which times
kills."""


def coordinating_partition(group: str, partitions: int) -> int:
    """The partition of the offsets topic whose leader coordinates `group`: Java's `hashCode` over
    UTF-16 units, abs(MIN_VALUE) being 0 (`GroupMetadataManager.partitionFor`)."""
    units = group.encode("utf-16-be", "surrogatepass")
    value = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    signed = value - (1 << 32) if value >= 1 << 31 else value
    return (0 if signed == -(1 << 31) else abs(signed)) % partitions


@dataclass(slots=True)
class Coordinators:
    """The leaders of the partitions of the offsets topic, and the faults that kept a change of
    leader from a broker."""

    _spans: dict[int, list[Row]] = field(default_factory=lambda: defaultdict(list))
    _faults: list[Row] = field(default_factory=list)

    @classmethod
    def derive(cls, derived: Derived) -> Coordinators:
        history = cls(_faults=[fault for fault in derived.faults if fault["acted"]])
        places = {
            part["p"]: part["partition"]
            for part in derived.partitions
            if part["topic"] == OFFSETS_TOPIC
        }
        for span in derived.tables.get("state_spans", []):
            if span["p"] in places:
                history._spans[places[span["p"]]].append(span)
        return history

    def may_be_former(self, group: str, begin_ns: int, end_ns: int) -> bool:
        """Whether a former coordinator of `group` was alive in this time and may not have known its
        successor.

        Without evidence of the coordinators, any cut link or pause makes it possible.
        """
        interval = Interval(begin_ns, end_ns + 1)
        if not self._spans:
            return any(self._isolates(fault, None, interval) for fault in self._faults)
        spans = self._spans[coordinating_partition(group, max(self._spans) + 1)]
        leads = {s["leader"] for s in spans if Interval(s["begin_ns"], s["end_ns"]).meets(interval)}
        for span in spans:
            former, ended_ns = span["leader"], span["end_ns"]
            if (
                ended_ns > end_ns
                or former in leads
                or former < 0
                or self._was_dead(former, interval)
            ):
                continue
            if self._was_dead(former, Interval(ended_ns, ended_ns + SLACK_NS)):
                continue  # it died with its leadership, and restarts without it
            informed_ns = ended_ns + GRACE_NS
            if begin_ns < informed_ns or any(
                self._isolates(f, former, interval) for f in self._faults
            ):
                return True
        return False

    def is_steady(self, group: str, begin_ns: int, end_ns: int) -> bool:
        """Whether one broker certainly coordinated `group` all the time, and no fault delayed
        replication to its followers."""
        interval = Interval(begin_ns - SLACK_NS, end_ns + SLACK_NS)
        if not self._spans or any(
            acting_interval(fault).meets(interval) and not has_only(fault, OF_CLIENTS)
            for fault in self._faults
        ):
            return False
        spans = self._spans[coordinating_partition(group, max(self._spans) + 1)]
        met = [s for s in spans if Interval(s["begin_ns"], s["end_ns"]).meets(interval)]
        return len({span["leader_epoch"] for span in met}) == 1

    def _was_dead(self, broker: int, interval: Interval) -> bool:
        return any(
            has_only(fault, ENDS_NODES)
            and f"b{broker}" in targets_of(fault)
            and acting_interval(fault).begin_ns <= interval.begin_ns
            and (fault["end_ns"] or acting_interval(fault).end_ns) >= interval.end_ns
            for fault in self._faults
        )

    def _isolates(self, fault: Row, broker: int | None, interval: Interval) -> bool:
        """Whether a fault other than its death could keep metadata updates from `broker` (None: any
        broker)."""
        window = acting_interval(fault)
        late = Interval(window.begin_ns, window.end_ns + GRACE_NS)
        if has_only(fault, ENDS_NODES) or not late.meets(interval):
            return False
        ends = nodes_of(fault)
        is_of_metadata = any(end.startswith(("zk", "q")) for end in ends)
        return broker is None or f"b{broker}" in ends or is_of_metadata
