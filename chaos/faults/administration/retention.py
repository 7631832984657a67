"""An administrator shortens the retention of a topic and restores it."""

from __future__ import annotations

from urteil.chaos.effects import Effect
from urteil.chaos.fault_options import whole_number
from urteil.chaos.faults.base.topic_fault import SettingFault


class Retention(SettingFault):
    """`retention.ms` and `segment.ms`: brokers delete old segments while consumers read them.

    Brokers check every `log.retention.check.interval.ms`, which scenarios set low.
    """

    name = "retention"
    about = "shorten retention.ms and segment.ms of a topic; restore them at healing"
    effects = frozenset({Effect.SHORTENS_RETENTION})
    retention_ms: int = whole_number(2000, "the value during the fault", name="retention.ms")
    segment_ms: int = whole_number(1000, "the value during the fault", name="segment.ms")

    def requested_settings(self) -> dict[str, str]:
        return {"retention.ms": str(self.retention_ms), "segment.ms": str(self.segment_ms)}

    def voided_promises(self) -> frozenset[str]:
        """Acknowledged records are deleted before the time that the topic promised."""
        return frozenset({"retention"})
