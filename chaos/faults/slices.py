"""Data in small slices: what was written at once arrives piece by piece."""

from __future__ import annotations

from typing import ClassVar

from urteil.chaos.controls import Controls
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.faults.degraded_links import CLIENTS, DegradedLinks
from urteil.chaos.observations import Transfer


class Slices(DegradedLinks):
    """Every request and answer is cut into slices that come one by one."""

    name = "slices"
    about = "requests and answers arrive in small slices with a pause between them"
    proves = "pieces in which one answer arrives, and the largest of them, before and after"
    options: ClassVar[dict[str, str]] = {
        "bytes": "the size of a slice on average, 2 to 100000 (default 60)",
        "variation_bytes": "plus or minus, less than bytes (default 20)",
        "pause_us": "microseconds between two slices (default 1000)",
        **CLIENTS,
    }

    def __init__(self, arguments: FaultArguments) -> None:
        super().__init__(arguments)
        self.bytes = int(arguments.number("bytes", 60))
        self.variation = int(arguments.number("variation_bytes", min(20, self.bytes - 1)))
        self.pause_us = int(arguments.number("pause_us", 1000))
        if not 2 <= self.bytes <= 100_000:
            raise ValueError(f"bytes={self.bytes} is not between 2 and 100000")
        if not 0 <= self.variation < self.bytes:
            raise ValueError(f"variation_bytes={self.variation} is not between 0 and bytes")
        if not 0 <= self.pause_us <= 1_000_000:
            raise ValueError(f"pause_us={self.pause_us} is not between 0 and 1000000")

    def spoil(self, controls: Controls) -> None:
        slicer = {
            "average_size": self.bytes,
            "size_variation": self.variation,
            "delay": self.pause_us,
        }
        controls.net.add_toxic(self.links, "slicer", slicer, owner=self.owner)

    def spoilt(self, before: Transfer, after: Transfer) -> bool:
        """Two slices may be read as one when the reader is late."""
        return after.ended == "answered" and after.pieces >= 2 * before.pieces

    def told(self, before: Transfer, after: Transfer) -> str:
        return f"{_pieces(before)} before, {_pieces(after)} now"


def _pieces(one: Transfer) -> str:
    return f"{one.received_bytes} bytes in {one.pieces} (largest {one.largest_piece_bytes})"
