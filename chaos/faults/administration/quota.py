"""Clients get a quota, which healing removes."""

from __future__ import annotations

from urteil.chaos.controls import Controls
from urteil.chaos.effects import Effect
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.fault_options import number
from urteil.chaos.faults.base.fault import STARTED_BY_LAB, Fault, Proof

DEFAULT_RATE = 20_000.0
ALL = "clients"


class Quota(Fault):
    """The bytes per second that a client id may write to or read from each broker (KIP-13).

    Not for external clusters: quotas would also apply to their own clients, and would outlive the
    death of the lab.
    """

    name = "quota"
    about = "limit the bytes a second that clients may write to or read from each broker"
    effects = frozenset({Effect.SETS_QUOTAS})
    proves = "the quotas of the client id in ZooKeeper before and after"
    selectors = "clients (all that have no quota of their own), or a client id: p1, c1"
    producer_byte_rate: float | None = number(
        None, f"bytes a second to each broker; without any option {DEFAULT_RATE:g}"
    )
    consumer_byte_rate: float | None = number(None, "bytes a second from each broker")
    expiry_s = 300.0
    on_targets = STARTED_BY_LAB
    sample = ALL

    def __init__(self, arguments: FaultArguments) -> None:
        super().__init__(arguments)
        rates = {name: getattr(self, name) for name in self.options if name in arguments.options}
        self._rates: dict[str, float] = rates or {"producer_byte_rate": DEFAULT_RATE}
        self._before: dict[str, str] | None = None

    @property
    def _client(self) -> str | None:
        return None if self.arguments.target == ALL else self.arguments.target

    def begin(self, controls: Controls) -> Proof:
        self.targets = (self.arguments.target,)
        self._before = controls.admin.quotas(self._client)
        controls.admin.set_quotas(self._client, self._rates)
        current = controls.admin.quotas(self._client)
        acted = current != self._before and all(
            float(current.get(key, "nan")) == rate for key, rate in self._rates.items()
        )
        return Proof(
            acted=acted,
            text=f"{_describe_quotas(self._before)} before, {_describe_quotas(current)} now",
        )

    def heal(self, controls: Controls) -> str:
        if self._before is None:
            return "no quota was set"
        had = {key: self._before.get(key) for key in self._rates}
        back = {key: None if rate is None else float(rate) for key, rate in had.items()}
        controls.admin.set_quotas(self._client, back)
        return f"{_describe_quotas(self._before)} again"

    def find_residual_effects(self, controls: Controls) -> str:
        current = controls.admin.quotas(self._client)
        return (
            ""
            if current == (self._before or {})
            else f"{self.arguments.target} has {_describe_quotas(current)}"
        )


def _describe_quotas(quotas: dict[str, str]) -> str:
    return ", ".join(f"{name}={rate}" for name, rate in sorted(quotas.items())) or "no quota"
