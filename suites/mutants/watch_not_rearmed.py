"""Ignores the watch after a broker left, and under any but the first controller."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "the watch on /brokers/ids is not set again after a broker left, nor by a later controller"
MODELS = "a watch that fires once and is not set again"
SCENARIO = "leader-crash"
GUARANTEE = "slow_recovery"
TENURE = "urteil.broker.controller.tenure:Tenure"


def apply(mark: Mark) -> None:
    deaf: set[int] = set()

    def make_on_brokers(original: Function) -> Function:
        def on_brokers(tenure: Any, _path: str) -> None:
            if tenure.context.epoch > 1 or id(tenure) in deaf:
                mark.hit()
            else:
                original(tenure, _path)

        return on_brokers

    def make_left(original: Function) -> Function:
        async def brokers_left(tenure: Any, gone: Any) -> None:
            await original(tenure, gone)
            deaf.add(id(tenure))

        return brokers_left

    replace(f"{TENURE}._on_brokers", make_on_brokers)
    replace(f"{TENURE}._brokers_left", make_left)
