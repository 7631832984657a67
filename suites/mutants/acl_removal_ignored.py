"""Ignores ACL updates of a resource that contain fewer entries than before."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a broker applies added ACLs and ignores removed ones"
MODELS = "an ACL cache that processes additions only"
SCENARIO = "rights"
GUARANTEE = "unauthorised"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def put(table: Any, pattern: Any, acls: Any) -> None:
            known = table.get(pattern)
            if known is not None and len(acls.entries) < len(known.entries):
                mark.hit()
            else:
                original(table, pattern, acls)

        return put

    replace("urteil.broker.security.acls.acl_table:AclTable.put", make)
