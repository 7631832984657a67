"""Partitions that are added are not put where they were asked for."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "the assignment that CreatePartitions gives is ignored"
MODELS = "an assignment by hand that is lost"
SCENARIO = "known-answers"
GUARANTEE = "wrong_answer"


def apply(mark: Mark) -> None:
    """As if none had been given."""

    def make(original: Function) -> Function:
        def new_partitions(name: str, topic: Any, count: int, replicas: Any, racks: Any) -> Any:
            if replicas is not None:
                mark.hit()
            return original(name, topic, count, None, racks)

        return new_partitions

    replace("urteil.broker.controller.topic_admin:new_partitions", make)
