"""A topic of LogAppendTime keeps the times that its clients give."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "records of LogAppendTime keep their client's time, whatever the answer says"
MODELS = "a batch that is let in as it came (KIP-32)"
SCENARIO = "known-answers"
GUARANTEE = "wrong_answer"


def apply(mark: Mark) -> None:
    """Such a batch is taken to be right as it is."""

    def make(original: Function) -> Function:
        def set_timestamps(batch: Any, max_timestamp: int, *, of_broker: bool) -> None:
            if of_broker:
                mark.hit()
            else:
                original(batch, max_timestamp, of_broker=False)

        return set_timestamps

    replace("urteil.broker.log.append_validation:set_timestamps", make)
