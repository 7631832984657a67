"""Removes the operations that imply another one."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "READ or WRITE rights do not imply DESCRIBE"
MODELS = "AclAuthorizer without implied operations"
SCENARIO = "rights"
GUARANTEE = "unauthorised"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def says(entries: Any, permission: Any, operations: Any) -> bool:
            if len(operations) < 2 or not original(entries, permission, operations):
                return bool(original(entries, permission, operations))
            mark.hit()
            return bool(original(entries, permission, operations[:1]))

        return says

    replace("urteil.broker.security.authorizer:_says", make)
