"""Counts all transactional ids as authorised."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "AddPartitionsToTxn and EndTxn are carried out for any client"
MODELS = "APIs without authorisation"
SCENARIO = "rights"
GUARANTEE = "unauthorised"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def may_write(broker: Any, context: Any, transactional_id: str) -> bool:
            if not original(broker, context, transactional_id):
                mark.hit()
            return True

        return may_write

    replace("urteil.broker.api.transactions:_may_write", make)
