"""Connections that stay half open long after one side has closed them."""

from __future__ import annotations

from typing import ClassVar

from urteil.chaos.controls import Controls
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.faults.degraded_links import CLIENTS, DegradedLinks
from urteil.chaos.observations import Transfer


class SlowClose(DegradedLinks):
    """The end of a connection reaches the other side late."""

    name = "slow_close"
    about = "connections close late: the other side is told of the end after a delay"
    dst_closes = True
    proves = "milliseconds from one side's end of a connection to its end, before and after"
    options: ClassVar[dict[str, str]] = {
        "delay_ms": "how late each way, 100 to 30000 (default 2000)",
        **CLIENTS,
    }

    def __init__(self, arguments: FaultArguments) -> None:
        super().__init__(arguments)
        self.delay_ms = int(arguments.number("delay_ms", 2000, least=100, most=30_000))
        self.timeout_s = 5 + 2 * self.delay_ms / 1000

    def spoil(self, controls: Controls) -> None:
        controls.net.add_toxic(self.links, "slow_close", {"delay": self.delay_ms}, owner=self.owner)

    def spoilt(self, before: Transfer, after: Transfer) -> bool:
        return (before.closing_ms or 0) < 0.5 * self.delay_ms <= 0.6 * (after.closing_ms or 0)

    def told(self, before: Transfer, after: Transfer) -> str:
        ms = "not closed" if after.closing_ms is None else f"{after.closing_ms:.0f} ms"
        return f"closed within {before.closing_ms or 0:.1f} ms before, {ms} now"
