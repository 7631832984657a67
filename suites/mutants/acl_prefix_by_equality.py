"""Compares a prefixed ACL with the complete resource name only."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a PREFIXED ACL matches only a resource of exactly that name"
MODELS = "KIP-290: PREFIXED patterns treated as LITERAL"
SCENARIO = "rights"
GUARANTEE = "unauthorised"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def about(table: Any, type: Any, name: str) -> Any:
            known = table._prefix_lengths
            lengths = known.get(type, {})
            if any(length < len(name) for length in lengths):
                mark.hit()
            whole = {length: n for length, n in lengths.items() if length == len(name)}
            table._prefix_lengths = {**known, type: whole}
            result = original(table, type, name)
            table._prefix_lengths = known
            return result

        return about

    replace("urteil.broker.security.acls.acl_table:AclTable.about", make)
