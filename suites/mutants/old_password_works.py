"""A user's password is learnt once."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a broker that knows a user's password goes on with it when it was changed or deleted"
MODELS = "SCRAM credentials cached without heed to their notifications"
SCENARIO = "rights"
GUARANTEE = "unauthorised"


def apply(mark: Mark) -> None:
    """Only who had none is heard of."""

    def make(original: Function) -> Function:
        def changed(users: Any, entity: str, settings: Any) -> None:
            if users._users.get(entity):
                mark.hit()
            else:
                original(users, entity, settings)

        return changed

    replace("urteil.broker.server.scram_users:ScramUsers._changed", make)
