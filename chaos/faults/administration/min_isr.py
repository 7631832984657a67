"""An administrator changes `min.insync.replicas` of a topic and restores it."""

from __future__ import annotations

from typing import ClassVar

from urteil.chaos.faults.base.topic_fault import SettingFault


class MinIsr(SettingFault):
    """`min.insync.replicas` of a topic, changed while producers wait for acknowledgements."""

    name = "min_isr"
    about = "change min.insync.replicas of a topic, and restore it at healing"
    defaults: ClassVar[dict[str, float]] = {"min.insync.replicas": 1}
    options: ClassVar[dict[str, str]] = {
        "min.insync.replicas": "the value during the fault (default 1)"
    }
