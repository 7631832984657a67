"""An administrator changes `min.insync.replicas` of a topic and restores it."""

from __future__ import annotations

from urteil.chaos.effects import Effect
from urteil.chaos.fault_options import whole_number
from urteil.chaos.faults.base.topic_fault import SettingFault


class MinIsr(SettingFault):
    """`min.insync.replicas` of a topic, changed while producers wait for acknowledgements."""

    name = "min_isr"
    about = "change min.insync.replicas of a topic, and restore it at healing"
    effects = frozenset({Effect.CHANGES_MIN_ISR})
    min_isr: int = whole_number(1, "the value during the fault", name="min.insync.replicas")

    def requested_settings(self) -> dict[str, str]:
        return {"min.insync.replicas": str(self.min_isr)}
