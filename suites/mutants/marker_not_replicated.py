"""Appends markers with acks=1."""

from __future__ import annotations

import copy
from typing import Any

from urteil.suites.mutants.offsets_acked_before_replication import Hasty
from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a transaction's markers count as written before any follower has them"
MODELS = "WriteTxnMarkers appended with acks=1"
SCENARIO = "lost-markers"
GUARANTEE = "torn_txn"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        async def write(markers: Any, *given: Any) -> Any:
            hasty = copy.copy(markers)
            hasty._replicas = Hasty(markers._replicas, mark)
            return await original(hasty, *given)

        return write

    replace("urteil.broker.transactions.marker_writer:MarkerWriter._write", make)
