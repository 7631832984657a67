"""Data arrives in small slices."""

from __future__ import annotations

from urteil.chaos.controls import Controls
from urteil.chaos.effects import Effect
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.fault_options import whole_number
from urteil.chaos.faults.base.degraded_links import DegradedLinks
from urteil.chaos.observations import Transfer


class Slices(DegradedLinks):
    """Splits every request and response into slices that arrive one by one."""

    name = "slices"
    about = "split requests and responses into small slices with a pause between them"
    effects = frozenset({Effect.SLOWS_LINKS})
    proves = "the number of pieces of one response, and the largest of them, before and after"
    bytes: int = whole_number(60, "average size of a slice", least=2, most=100_000)
    variation_bytes: int = whole_number(
        None, "plus or minus, less than bytes; by default 20 at most", least=0
    )
    pause_us: int = whole_number(
        1000, "time between two slices", unit="us", least=0, most=1_000_000
    )

    def __init__(self, arguments: FaultArguments) -> None:
        super().__init__(arguments)
        if "variation_bytes" not in arguments.options:
            self.variation_bytes = min(20, self.bytes - 1)
        if self.variation_bytes >= self.bytes:
            raise ValueError(f"variation_bytes={self.variation_bytes} is not below bytes")

    def add_toxic(self, controls: Controls) -> None:
        slicer = {
            "average_size": self.bytes,
            "size_variation": self.variation_bytes,
            "delay": self.pause_us,
        }
        controls.net.add_toxic(self.links, "slicer", slicer, owner=self.owner)

    def shows_effect(self, before: Transfer, after: Transfer) -> bool:
        """A slow reader may read two slices as one."""
        return after.ended == "answered" and after.pieces >= 2 * before.pieces

    def describe(self, before: Transfer, after: Transfer) -> str:
        return f"{_describe_pieces(before)} before, {_describe_pieces(after)} now"


def _describe_pieces(transfer: Transfer) -> str:
    largest = transfer.largest_piece_bytes
    return f"{transfer.received_bytes} bytes in {transfer.pieces} pieces (largest {largest})"
