"""Answers every authorisation from a cache that is never invalidated."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "the authorizer remembers its decisions for ever, although ACLs change"
MODELS = "a decision cache without invalidation"
SCENARIO = "rights"
GUARANTEE = "unauthorised"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def decided(authorizer: Any, asker: Any, operation: Any, type: Any, name: str) -> Any:
            if authorizer._revision != authorizer.acls.revision:
                mark.hit()
                authorizer._revision = authorizer.acls.revision
            return original(authorizer, asker, operation, type, name)

        return decided

    replace("urteil.broker.security.authorizer:Authorizer._cached_decision", make)
