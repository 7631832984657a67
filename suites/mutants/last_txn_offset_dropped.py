"""Drops the last offset of a TxnOffsetCommit request that has two or more."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "TxnOffsetCommit stores all offsets but the last"
MODELS = "an offset that a transaction loses"
SCENARIO = "known-answers"
GUARANTEE = "wrong_answer"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        async def commit(coordinator: Any, *asked: Any) -> Any:
            *who, positions = asked
            if len(positions) > 1:
                mark.hit()
                positions = dict(list(positions.items())[:-1])
            return await original(coordinator, *who, positions)

        return commit

    replace("urteil.broker.groups.coordinator:GroupCoordinator.commit_in_transaction", make)
