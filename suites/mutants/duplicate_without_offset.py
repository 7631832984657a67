"""Answers a duplicate with offset -1."""

from __future__ import annotations

from dataclasses import replace as changed
from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a duplicate batch is acknowledged without its offset, though the broker has it"
MODELS = "KAFKA-5494: duplicates answered with offset -1"
SCENARIO = "known-answers"
GUARANTEE = "wrong_answer"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def duplicate_result(log: Any, sent: Any) -> Any:
            mark.hit()
            return changed(original(log, sent), base_offset=-1)

        return duplicate_result

    replace("urteil.broker.log.partition_log:PartitionLog._duplicate_result", make)
