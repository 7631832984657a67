"""Ask for more or fewer in-sync replicas of a topic, and set it back."""

from __future__ import annotations

from typing import ClassVar

from urteil.chaos.faults.topic_fault import SettingFault


class MinIsr(SettingFault):
    """`min.insync.replicas` of a topic, changed while producers wait for acknowledgements."""

    name = "min_isr"
    about = "change min.insync.replicas of a topic, and set it back"
    defaults: ClassVar[dict[str, float]] = {"min.insync.replicas": 1}
    options: ClassVar[dict[str, str]] = {"min.insync.replicas": "the number meanwhile (default 1)"}
