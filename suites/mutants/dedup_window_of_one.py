"""Of each producer only the last batch is remembered, though five may be under way."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a batch sent again is known as a duplicate only if it was its producer's last one"
MODELS = "Redpanda #3077"
SCENARIO = "repeated-batches"
GUARANTEE = "duplicate"


def apply(mark: Mark) -> None:
    """To remember a batch is to forget the one before it."""

    def make(original: Function) -> Function:
        def add(producer: Any, header: Any, base_offset: int) -> None:
            original(producer, header, base_offset)
            if len(producer.batches) > 1:
                mark.hit()
                del producer.batches[:-1]

        return add

    replace("urteil.broker.log.producer_states:ProducerEntry.add", make)
