"""What was decided once is never decided anew, whatever becomes of the ACLs."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "the authorizer's decisions are remembered for ever, also when ACLs change"
MODELS = "a cache of decisions that nobody invalidates"
SCENARIO = "rights"
GUARANTEE = "unauthorised"


def apply(mark: Mark) -> None:
    """What was remembered is taken for what the ACLs of today say."""

    def make(original: Function) -> Function:
        def decided(authorizer: Any, asker: Any, operation: Any, type: Any, name: str) -> Any:
            if authorizer._revision != authorizer.acls.revision:
                mark.hit()
                authorizer._revision = authorizer.acls.revision
            return original(authorizer, asker, operation, type, name)

        return decided

    replace("urteil.broker.security.authorizer:Authorizer._decided", make)
