"""Accepts a LogAppendTime batch as it is."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "records of a LogAppendTime topic keep their client's timestamps, whatever the answer says"
MODELS = "KIP-32: a batch appended unchanged"
SCENARIO = "known-answers"
GUARANTEE = "wrong_answer"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def set_timestamps(batch: Any, max_timestamp: int, *, of_broker: bool) -> None:
            if of_broker:
                mark.hit()
            else:
                original(batch, max_timestamp, of_broker=False)

        return set_timestamps

    replace("urteil.broker.log.append_validation:set_timestamps", make)
