"""Whoever knows a transactional id may use it."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "partitions join transactions, and those end, for whoever asks"
MODELS = "APIs without their authorisation"
SCENARIO = "rights"
GUARANTEE = "unauthorised"


def apply(mark: Mark) -> None:
    """All transactional ids count as allowed."""

    def make(original: Function) -> Function:
        def may_write(broker: Any, context: Any, transactional_id: str) -> bool:
            if not original(broker, context, transactional_id):
                mark.hit()
            return True

        return may_write

    replace("urteil.broker.api.transactions:_may_write", make)
