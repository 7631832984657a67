"""Links with low bandwidth: data waits for earlier data."""

from __future__ import annotations

from typing import ClassVar

from urteil.chaos.controls import Controls
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.faults.base.degraded_links import CLIENTS, DegradedLinks
from urteil.chaos.observations import Transfer

ANSWER_BYTES = 300
MOST_REQUESTS = 2_000


class Bandwidth(DegradedLinks):
    """Limits each connection to `rate_kb_per_s` in each direction."""

    name = "bandwidth"
    about = "limit the bandwidth of every connection, each way"
    proves = "throughput of responses, measured before and after"
    options: ClassVar[dict[str, str]] = {
        "rate_kb_per_s": "kilobytes a second, 1 at least (default 20)",
        **CLIENTS,
    }

    def __init__(self, arguments: FaultArguments) -> None:
        super().__init__(arguments)
        self.rate = int(arguments.number("rate_kb_per_s", 20))
        if self.rate < 1:
            raise ValueError(
                f"rate_kb_per_s={self.rate} is below 1: use the fault partition instead"
            )

    def request_count(self) -> int:
        """As many requests as have half a second of responses."""
        return max(2, min(MOST_REQUESTS, self.rate * 500 // ANSWER_BYTES))

    def add_toxic(self, controls: Controls) -> None:
        controls.net.add_toxic(self.links, "bandwidth", {"rate": self.rate}, owner=self.owner)

    def shows_effect(self, before: Transfer, after: Transfer) -> bool:
        return _kb_per_s(after) <= 1.3 * self.rate < _kb_per_s(before)

    def describe(self, before: Transfer, after: Transfer) -> str:
        return f"{_kb_per_s(before):.0f} KB/s before, {_kb_per_s(after):.1f} KB/s now"


def _kb_per_s(one: Transfer) -> float:
    return one.received_bytes / 1000 / max(one.seconds, 1e-6)
