"""Base classes of faults that act on a topic as an administrator, by `Controls.admin`."""

from __future__ import annotations

from urteil.chaos.admin_controls import AdminControls
from urteil.chaos.controls import Controls
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.faults.base.fault import Fault, Proof
from urteil.chaos.node_selectors import NoTarget

POLL_S = 0.1


class TopicFault(Fault):
    """An act on the scenario's first topic, or on the one that the option `topic` names."""

    selectors = "topic"
    sample = "topic"
    expiry_s = 300.0

    def replicas(self, admin: AdminControls) -> dict[int, tuple[str, ...]]:
        """The current replicas by partition. NoTarget if the topic does not exist."""
        replicas = admin.replicas(self.arguments.topic)
        if not replicas:
            raise NoTarget(f"no topic {self.arguments.topic!r} exists")
        return replicas

    def find_residual_effects(self, controls: Controls) -> str:
        return ""


class SettingFault(TopicFault):
    """Changes settings of a topic and restores them. Proof: the settings in ZooKeeper."""

    proves = "the settings of the topic in ZooKeeper before and after"

    def __init__(self, arguments: FaultArguments) -> None:
        super().__init__(arguments)
        self.requested = self.requested_settings()
        self._before: dict[str, str | None] | None = None

    def requested_settings(self) -> dict[str, str]:
        """The settings during the fault."""
        raise NotImplementedError

    def begin(self, controls: Controls) -> Proof:
        admin, topic = controls.admin, self.arguments.topic
        self.targets = (topic,)
        self.replicas(admin)
        own = admin.config(topic)
        self._before = {name: own.get(name) for name in self.requested}
        admin.set_config(topic, self.requested)
        current = {name: admin.config(topic).get(name) for name in self.requested}
        acted = current == self.requested and current != self._before
        return Proof(
            acted=acted,
            text=f"{topic}: {_format(self._before)} before, {_format(current)} now",
        )

    def heal(self, controls: Controls) -> str:
        if self._before is not None:
            controls.admin.set_config(self.arguments.topic, self._before)
        return f"{_format(self._before or {})} again"

    def find_residual_effects(self, controls: Controls) -> str:
        own = controls.admin.config(self.arguments.topic)
        current = {name: own.get(name) for name in self.requested}
        return "" if current == self._before else f"{self.arguments.topic} has {_format(current)}"


def _format(settings: dict[str, str | None]) -> str:
    shown = (f"{name}={'default' if v is None else v}" for name, v in settings.items())
    return ", ".join(shown)
