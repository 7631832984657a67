"""Who does not lead says that it does itself."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "the hint of who leads instead names the broker that was asked"
MODELS = "a wrong hint (KIP-951)"
SCENARIO = "known-answers"
GUARANTEE = "wrong_answer"


def apply(mark: Mark) -> None:
    """Each broker names itself."""

    def make(original: Function) -> Function:
        def find(hints: Any, topic: str, partition: int, error: Any) -> tuple[int, int]:
            leader, epoch = original(hints, topic, partition, error)
            if leader < 0:
                return leader, epoch
            mark.hit()
            return hints._broker.config.broker_id, epoch

        return find

    replace("urteil.broker.api.leader_hints:_Hints.find", make)
