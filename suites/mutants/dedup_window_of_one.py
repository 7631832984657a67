"""Removes all batches of a producer but the newest from its state."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = (
    "only the last batch of a producer is recognised as a duplicate, though five may be in flight"
)
MODELS = "Redpanda #3077"
SCENARIO = "repeated-batches"
GUARANTEE = "duplicate"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def add(producer: Any, header: Any, base_offset: int) -> None:
            original(producer, header, base_offset)
            if len(producer.batches) > 1:
                mark.hit()
                del producer.batches[:-1]

        return add

    replace("urteil.broker.log.producer_states:ProducerEntry.add", make)
