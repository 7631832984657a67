"""Returns the broker's own id as the leader hint."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "NOT_LEADER_OR_FOLLOWER answers name the answering broker as the leader"
MODELS = "KIP-951: a wrong hint"
SCENARIO = "known-answers"
GUARANTEE = "wrong_answer"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def find(hints: Any, topic: str, partition: int, error: Any) -> tuple[int, int]:
            leader, epoch = original(hints, topic, partition, error)
            if leader < 0:
                return leader, epoch
            mark.hit()
            return hints._broker.config.broker_id, epoch

        return find

    replace("urteil.broker.api.leader_hints:_Hints.find", make)
