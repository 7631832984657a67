"""A prefixed right is one to the resource of just that name."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "prefixed ACLs are looked up by the whole name of a resource"
MODELS = "PREFIXED patterns taken for LITERAL ones (KIP-290)"
SCENARIO = "rights"
GUARANTEE = "unauthorised"


def apply(mark: Mark) -> None:
    """Of all lengths of prefixes only that of the name itself is tried."""

    def make(original: Function) -> Function:
        def about(table: Any, type: Any, name: str) -> Any:
            known = table._prefix_lengths
            lengths = known.get(type, {})
            if any(length < len(name) for length in lengths):
                mark.hit()
            whole = {length: n for length, n in lengths.items() if length == len(name)}
            table._prefix_lengths = {**known, type: whole}
            found = original(table, type, name)
            table._prefix_lengths = known
            return found

        return about

    replace("urteil.broker.security.acl_table:AclTable.about", make)
