"""Discards the assignments of a CreatePartitions request."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "CreatePartitions ignores the requested replica assignment"
MODELS = "a manual assignment that is lost"
SCENARIO = "known-answers"
GUARANTEE = "wrong_answer"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def new_partitions(name: str, topic: Any, count: int, replicas: Any, racks: Any) -> Any:
            if replicas is not None:
                mark.hit()
            return original(name, topic, count, None, racks)

        return new_partitions

    replace("urteil.broker.controller.topic_admin:new_partitions", make)
