"""An administrator changes a setting of all brokers, several times, and removes it."""

from __future__ import annotations

from urteil.chaos.controls import Controls
from urteil.chaos.effects import Effect
from urteil.chaos.fault_options import whole_number
from urteil.chaos.faults.base.fault import WITH_ZOOKEEPER, Fault, Proof

SETTING, FIRST_VALUE = "log.index.interval.bytes", 4_000


class BrokerDefaults(Fault):
    """Sets `log.index.interval.bytes` for all brokers, to another value each time (KIP-226). No
    guarantee depends on this setting. At each change brokers compute the settings of all their logs
    again, and topics must keep their own ones."""

    name = "broker_defaults"
    about = "change a default of all brokers while they run, several times; remove it at healing"
    effects = frozenset({Effect.CHANGES_DEFAULTS})
    proves = "the defaults in ZooKeeper before and after; each broker reported every value"
    selectors = "anything: the fault changes all brokers"
    expiry_s = 300.0
    on_targets = WITH_ZOOKEEPER
    changes: int = whole_number(2, "number of changes", least=1, most=100)

    def begin(self, controls: Controls) -> Proof:
        admin = controls.admin
        self.targets = (self.arguments.target,)
        before = admin.defaults().get(SETTING)
        for number in range(self.changes):
            admin.set_defaults({SETTING: str(FIRST_VALUE + number)})
        current = admin.defaults().get(SETTING)
        acted = current == str(FIRST_VALUE + self.changes - 1)
        text = f"{SETTING}={before} before, {current} after {self.changes} changes"
        return Proof(acted=acted, text=text)

    def heal(self, controls: Controls) -> str:
        controls.admin.set_defaults({SETTING: None})
        return f"{SETTING} is set for no broker"

    def find_residual_effects(self, controls: Controls) -> str:
        value = controls.admin.defaults().get(SETTING)
        return "" if value is None else f"{SETTING}={value} is still set for all brokers"
