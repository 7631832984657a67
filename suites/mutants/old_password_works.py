"""Ignores changes of credentials that the broker already has."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a broker accepts a password after it was changed or deleted"
MODELS = "SCRAM credentials cached without regard to notifications"
SCENARIO = "rights"
GUARANTEE = "unauthorised"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def changed(users: Any, entity: str, settings: Any) -> None:
            if users._users.get(entity):
                mark.hit()
            else:
                original(users, entity, settings)

        return changed

    replace("urteil.broker.security.sasl.scram_users:ScramUsers._changed", make)
