"""Links with low bandwidth: data waits for earlier data."""

from __future__ import annotations

from urteil.chaos.controls import Controls
from urteil.chaos.effects import Effect
from urteil.chaos.fault_options import whole_number
from urteil.chaos.faults.base.degraded_links import DegradedLinks
from urteil.chaos.observations import Transfer

ANSWER_BYTES = 300
MOST_REQUESTS = 2_000


class Bandwidth(DegradedLinks):
    """Limits each connection to `rate_kb_per_s` in each direction."""

    name = "bandwidth"
    about = "limit the bandwidth of every connection, each way"
    effects = frozenset({Effect.SLOWS_LINKS})
    proves = "throughput of responses, measured before and after"
    rate_kb_per_s: int = whole_number(
        20, "bandwidth of a connection (to cut it, use partition)", unit="KB/s", least=1
    )

    def request_count(self) -> int:
        """Enough requests for responses of half a second."""
        return max(2, min(MOST_REQUESTS, self.rate_kb_per_s * 500 // ANSWER_BYTES))

    def add_toxic(self, controls: Controls) -> None:
        controls.net.add_toxic(
            self.links, "bandwidth", {"rate": self.rate_kb_per_s}, owner=self.owner
        )

    def shows_effect(self, before: Transfer, after: Transfer) -> bool:
        return _kb_per_s(after) <= 1.3 * self.rate_kb_per_s < _kb_per_s(before)

    def describe(self, before: Transfer, after: Transfer) -> str:
        return f"{_kb_per_s(before):.0f} KB/s before, {_kb_per_s(after):.1f} KB/s now"


def _kb_per_s(transfer: Transfer) -> float:
    return transfer.received_bytes / 1000 / max(transfer.seconds, 1e-6)
