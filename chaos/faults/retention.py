"""Keep a topic's records for a shorter time, and set it back."""

from __future__ import annotations

from typing import ClassVar

from urteil.chaos.faults.topic_fault import SettingFault


class Retention(SettingFault):
    """`retention.ms` with `segment.ms`: old segments go while they are read.

    Brokers look at `log.retention.check.interval.ms`, which scenarios set low.
    """

    name = "retention"
    about = "shorten retention.ms and segment.ms of a topic, and set them back"
    defaults: ClassVar[dict[str, float]] = {"retention.ms": 2000, "segment.ms": 1000}
    options: ClassVar[dict[str, str]] = {
        "retention.ms": "meanwhile (default 2000)",
        "segment.ms": "meanwhile (default 1000)",
    }

    def voided_promises(self) -> frozenset[str]:
        """What was acknowledged goes sooner than the topic said when it was sent."""
        return frozenset({"retention"})
