"""Ignores settings of the default entity."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a broker ignores dynamic settings that are set for all brokers"
MODELS = "KIP-226 without cluster-wide defaults"
SCENARIO = "known-answers"
GUARANTEE = "wrong_answer"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def changed(dynamic: Any, entity: str, settings: Any) -> None:
            if entity == "<default>" and settings:
                mark.hit()
                return
            original(dynamic, entity, settings)

        return changed

    replace("urteil.broker.config.dynamic_settings:DynamicSettings._changed", make)
