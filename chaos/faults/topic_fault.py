"""What administrative faults share: they act on a topic, through `Controls.admin`."""

from __future__ import annotations

from typing import ClassVar

from urteil.chaos.admin_controls import AdminControls
from urteil.chaos.controls import Controls
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.faults.fault import KAFKA, MIX, URTEIL, Fault, Proof
from urteil.chaos.node_selectors import NoTarget

POLL_S = 0.1
OWN_CLUSTER = (URTEIL, KAFKA, MIX)
"""Targets whose programs and disks are the lab's."""


class TopicFault(Fault):
    """An act on the scenario's first topic, or on the one that the option `topic` names."""

    family = "administration"
    selectors = "topic"
    sample = "topic"
    expiry_s = 300.0

    def replicas(self, admin: AdminControls) -> dict[int, tuple[str, ...]]:
        """As they stand; NoTarget when there is no such topic."""
        found = admin.replicas(self.arguments.topic)
        if not found:
            raise NoTarget(f"there is no topic {self.arguments.topic!r}")
        return found

    def find_residual_effects(self, controls: Controls) -> str:
        return ""


class SettingFault(TopicFault):
    """Settings of a topic, changed and set back; proof: they stand in ZooKeeper."""

    proves = "the settings of the topic in ZooKeeper before and after"
    defaults: ClassVar[dict[str, float]] = {}

    def __init__(self, arguments: FaultArguments) -> None:
        super().__init__(arguments)
        asked = {name: arguments.number(name, default) for name, default in self.defaults.items()}
        self.wanted = {name: str(round(value)) for name, value in asked.items()}
        self._before: dict[str, str | None] | None = None

    def begin(self, controls: Controls) -> Proof:
        admin, topic = controls.admin, self.arguments.topic
        self.targets = (topic,)
        self.replicas(admin)
        own = admin.config(topic)
        self._before = {name: own.get(name) for name in self.wanted}
        admin.set_config(topic, self.wanted)
        found = {name: admin.config(topic).get(name) for name in self.wanted}
        acted = found == self.wanted and found != self._before
        return Proof(acted=acted, text=f"{topic}: {_told(self._before)} before, {_told(found)} now")

    def heal(self, controls: Controls) -> str:
        if self._before is not None:
            controls.admin.set_config(self.arguments.topic, self._before)
        return f"{_told(self._before or {})} again"

    def find_residual_effects(self, controls: Controls) -> str:
        own = controls.admin.config(self.arguments.topic)
        left = {name: own.get(name) for name in self.wanted}
        return "" if left == self._before else f"{self.arguments.topic} has {_told(left)}"


def _told(settings: dict[str, str | None]) -> str:
    shown = (f"{name}={'default' if v is None else v}" for name, v in settings.items())
    return ", ".join(shown)
