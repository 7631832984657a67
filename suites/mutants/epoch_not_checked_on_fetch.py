"""A leader gives out records without asking what the reader has."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a fetch is answered whatever leader epoch the reader's last record is of"
MODELS = "before KIP-320: fetches without leader epochs, logs that part and are not told"
SCENARIO = "cut-crash"
GUARANTEE = "replica_divergence"


def apply(mark: Mark) -> None:
    """No log diverges."""

    def make(original: Function) -> Function:
        def divergence(partition: Any, wanted: Any) -> None:
            if original(partition, wanted) is not None:
                mark.hit()

        return divergence

    replace("urteil.broker.replication.partition_read:_divergence", make)
