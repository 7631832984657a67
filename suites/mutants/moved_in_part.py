"""Of several positions in one transaction the last is not stored."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "TxnOffsetCommit stores all positions but one"
MODELS = "a position that a transaction loses"
SCENARIO = "known-answers"
GUARANTEE = "wrong_answer"


def apply(mark: Mark) -> None:
    """Of two and more."""

    def make(original: Function) -> Function:
        async def commit(coordinator: Any, *asked: Any) -> Any:
            *who, positions = asked
            if len(positions) > 1:
                mark.hit()
                positions = dict(list(positions.items())[:-1])
            return await original(coordinator, *who, positions)

        return commit

    replace("urteil.broker.groups.coordinator:GroupCoordinator.commit_in_transaction", make)
