"""Data arrives in small slices."""

from __future__ import annotations

from typing import ClassVar

from urteil.chaos.controls import Controls
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.faults.base.degraded_links import CLIENTS, DegradedLinks
from urteil.chaos.observations import Transfer


class Slices(DegradedLinks):
    """Splits every request and response into slices that arrive one by one."""

    name = "slices"
    about = "split requests and responses into small slices with a pause between them"
    proves = "the number of pieces of one response, and the largest of them, before and after"
    options: ClassVar[dict[str, str]] = {
        "bytes": "average size of a slice, 2 to 100000 (default 60)",
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

    def add_toxic(self, controls: Controls) -> None:
        slicer = {
            "average_size": self.bytes,
            "size_variation": self.variation,
            "delay": self.pause_us,
        }
        controls.net.add_toxic(self.links, "slicer", slicer, owner=self.owner)

    def shows_effect(self, before: Transfer, after: Transfer) -> bool:
        """A slow reader may read two slices as one."""
        return after.ended == "answered" and after.pieces >= 2 * before.pieces

    def describe(self, before: Transfer, after: Transfer) -> str:
        return f"{_describe_pieces(before)} before, {_describe_pieces(after)} now"


def _describe_pieces(one: Transfer) -> str:
    return f"{one.received_bytes} bytes in {one.pieces} pieces (largest {one.largest_piece_bytes})"
