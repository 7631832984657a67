"""A batch that is sent again is acknowledged without its place."""

from __future__ import annotations

from dataclasses import replace as changed
from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "who sends a batch again is not told where it is, though the broker knows"
MODELS = "duplicates answered with offset -1 by brokers that do not know it (KAFKA-5494)"
SCENARIO = "known-answers"
GUARANTEE = "wrong_answer"


def apply(mark: Mark) -> None:
    """Its offset is -1."""

    def make(original: Function) -> Function:
        def duplicate(append: Any, sent: Any) -> Any:
            mark.hit()
            return changed(original(append, sent), base_offset=-1)

        return duplicate

    replace("urteil.broker.log.append:Append._duplicate", make)
