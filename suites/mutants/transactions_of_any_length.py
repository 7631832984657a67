"""Accepts every timeout."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "transaction.max.timeout.ms is ignored"
MODELS = "a limit that is not enforced"
SCENARIO = "known-answers"
GUARANTEE = "wrong_answer"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        async def initialise(
            coordinator: Any, transactional_id: str, timeout_ms: int, expected: Any
        ) -> Any:
            most = coordinator._config.transaction_max_timeout_ms
            if timeout_ms > most:
                mark.hit()
            return await original(coordinator, transactional_id, min(timeout_ms, most), expected)

        return initialise

    replace("urteil.broker.transactions.coordinator:TransactionCoordinator.initialise", make)
