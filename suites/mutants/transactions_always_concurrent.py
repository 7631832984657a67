"""Answers each EndTxn after the sixtieth with CONCURRENT_TRANSACTIONS."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "after sixty transactions EndTxn is always answered with CONCURRENT_TRANSACTIONS"
MODELS = "coordinators whose pending transition never completes"
SCENARIO = "transactions-calm"
GUARANTEE = "no_progress"
BEFORE = 60


def apply(mark: Mark) -> None:
    from urteil.broker.wire.errors import ErrorCode

    ended = 0

    def make(original: Function) -> Function:
        async def end(coordinator: Any, *given: Any, **more: Any) -> Any:
            nonlocal ended
            ended += 1
            if ended > BEFORE:
                mark.hit()
                return ErrorCode.CONCURRENT_TRANSACTIONS
            return await original(coordinator, *given, **more)

        return end

    replace("urteil.broker.transactions.coordinator:TransactionCoordinator.end", make)
