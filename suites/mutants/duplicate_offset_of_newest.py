"""Returns the producer's newest remembered batch for each duplicate."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a duplicate batch is answered with the offset of its producer's newest batch"
MODELS = "one remembered offset for each producer"
SCENARIO = "repeated-batches"
GUARANTEE = "misplaced_ack"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def find_duplicate(producers: Any, header: Any) -> Any:
            result = original(producers, header)
            if result is None:
                return None
            newest = producers.entries[header.producer_id].batches[-1]
            if newest is not result:
                mark.hit()
            return newest

        return find_duplicate

    replace("urteil.broker.log.producer_states:ProducerStates.find_duplicate", make)
