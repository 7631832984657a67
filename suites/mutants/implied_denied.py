"""Who may read or write something may not find it."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "rights imply no others: Describe has to be granted for itself"
MODELS = "AclAuthorizer without the operations that imply Describe"
SCENARIO = "rights"
GUARANTEE = "unauthorised"


def apply(mark: Mark) -> None:
    """Only the operation itself counts."""

    def make(original: Function) -> Function:
        def says(entries: Any, permission: Any, operations: Any) -> bool:
            if len(operations) < 2 or not original(entries, permission, operations):
                return bool(original(entries, permission, operations))
            mark.hit()
            return bool(original(entries, permission, operations[:1]))

        return says

    replace("urteil.broker.security.authorizer:_says", make)
