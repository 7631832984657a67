"""Counts all topics of a DeleteRecords request as authorised."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "DeleteRecords is carried out for any client"
MODELS = "an API without authorisation"
SCENARIO = "rights"
GUARANTEE = "unauthorised"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def allowed_names(
            broker: Any, context: Any, operation: Any, type: Any, names: Any, **how: Any
        ) -> Any:
            if original(broker, context, operation, type, names, **how) != set(names):
                mark.hit()
            return names

        return allowed_names

    replace("urteil.broker.api.delete_records:allowed_names", make)
