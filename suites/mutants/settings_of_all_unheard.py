"""What is set for a broker reaches it; what is set for all does not."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a broker takes on no settings that an administrator sets for all brokers"
MODELS = "KIP-226 without its cluster-wide defaults"
SCENARIO = "known-answers"
GUARANTEE = "wrong_answer"


def apply(mark: Mark) -> None:
    """Only its own name counts."""

    def make(original: Function) -> Function:
        def changed(dynamic: Any, entity: str, settings: Any) -> None:
            if entity == "<default>" and settings:
                mark.hit()
                return
            original(dynamic, entity, settings)

        return changed

    replace("urteil.broker.server.dynamic_broker:DynamicBroker._changed", make)
