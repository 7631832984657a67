"""Omits the first partition when the markers of an abort are sent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "an aborted transaction over several partitions leaves one of them without a marker"
MODELS = "a marker that is not sent again after its request failed"
SCENARIO = "transactions"
GUARANTEE = "torn_txn"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        async def write(
            markers: Any, marker: Any, partitions: Iterable[Any], *more: Function
        ) -> Any:
            left = sorted(partitions)
            if not marker.commit and len(left) > 1:
                mark.hit()
                left = left[1:]
            return await original(markers, marker, left, *more)

        return write

    replace("urteil.broker.transactions.marker_sender:MarkerSender.write", make)
