"""A broker goes on with rights that another one took back."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a broker takes in ACLs that are added, and none that are removed"
MODELS = "a cache of ACLs that hears of additions alone"
SCENARIO = "rights"
GUARANTEE = "unauthorised"


def apply(mark: Mark) -> None:
    """The node of a resource has fewer entries than before: they stay."""

    def make(original: Function) -> Function:
        def put(table: Any, pattern: Any, acls: Any) -> None:
            known = table.get(pattern)
            if known is not None and len(acls.entries) < len(known.entries):
                mark.hit()
            else:
                original(table, pattern, acls)

        return put

    replace("urteil.broker.security.acl_table:AclTable.put", make)
