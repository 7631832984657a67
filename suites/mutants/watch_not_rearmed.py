"""Ignores the watch after a broker left, and under any but the first controller."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "the watch on /brokers/ids is not set again after a broker left, nor by a later controller"
MODELS = "a watch that fires once and is not set again"
SCENARIO = "leader-crash"
GUARANTEE = "slow_recovery"
TERM = "urteil.broker.controller.term:Term"


def apply(mark: Mark) -> None:
    deaf: set[int] = set()

    def make_on_brokers(original: Function) -> Function:
        def on_brokers(term: Any, _path: str) -> None:
            if term.context.epoch > 1 or id(term) in deaf:
                mark.hit()
            else:
                original(term, _path)

        return on_brokers

    def make_left(original: Function) -> Function:
        async def brokers_left(term: Any, gone: Any) -> None:
            await original(term, gone)
            deaf.add(id(term))

        return brokers_left

    replace(f"{TERM}._on_brokers", make_on_brokers)
    replace(f"{TERM}._brokers_left", make_left)
