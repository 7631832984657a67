"""An administrator shortens the retention of a topic and restores it."""

from __future__ import annotations

from typing import ClassVar

from urteil.chaos.faults.base.topic_fault import SettingFault


class Retention(SettingFault):
    """`retention.ms` and `segment.ms`: brokers delete old segments while consumers read them.

    Brokers check every `log.retention.check.interval.ms`, which scenarios set low.
    """

    name = "retention"
    about = "shorten retention.ms and segment.ms of a topic; restore them at healing"
    defaults: ClassVar[dict[str, float]] = {"retention.ms": 2000, "segment.ms": 1000}
    options: ClassVar[dict[str, str]] = {
        "retention.ms": "value during the fault (default 2000)",
        "segment.ms": "value during the fault (default 1000)",
    }

    def voided_promises(self) -> frozenset[str]:
        """Acknowledged records are deleted before the time that the topic promised."""
        return frozenset({"retention"})
