"""Connections that stay half open long after one side has closed them."""

from __future__ import annotations

from urteil.chaos.controls import Controls
from urteil.chaos.effects import Effect
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.fault_options import whole_number
from urteil.chaos.faults.base.degraded_links import DegradedLinks
from urteil.chaos.observations import Transfer


class SlowClose(DegradedLinks):
    """Delays the end of a connection on its way to the other side."""

    name = "slow_close"
    about = "delay the close of connections: the other side sees it late"
    effects = frozenset({Effect.SLOWS_LINKS})
    dst_closes = True
    proves = "milliseconds from one side's close to the other side's, before and after"
    delay_ms: int = whole_number(
        2000, "delay of a close each way", unit="ms", least=100, most=30_000
    )

    def __init__(self, arguments: FaultArguments) -> None:
        super().__init__(arguments)
        self.timeout_s = 5 + 2 * self.delay_ms / 1000

    def add_toxic(self, controls: Controls) -> None:
        controls.net.add_toxic(self.links, "slow_close", {"delay": self.delay_ms}, owner=self.owner)

    def shows_effect(self, before: Transfer, after: Transfer) -> bool:
        return (before.closing_ms or 0) < 0.5 * self.delay_ms <= 0.6 * (after.closing_ms or 0)

    def describe(self, before: Transfer, after: Transfer) -> str:
        ms = "not closed" if after.closing_ms is None else f"{after.closing_ms:.0f} ms"
        return f"closed within {before.closing_ms or 0:.1f} ms before, {ms} now"
