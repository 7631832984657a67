"""Removes DENY entries from the ACLs that are loaded in the first seconds."""

from __future__ import annotations

import time
from dataclasses import replace as changed
from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a broker that starts does not load the DENY ACLs"
MODELS = "an initial load of ACLs that reads one permission type only"
SCENARIO = "rights-crash"
GUARANTEE = "unauthorised"
STARTING_S = 3.0


def apply(mark: Mark) -> None:
    from urteil.broker.security.acls.acl_model import Permission

    began_s = time.monotonic()

    def make(original: Function) -> Function:
        def put(table: Any, pattern: Any, acls: Any) -> None:
            kept = tuple(one for one in acls.entries if one.permission is not Permission.DENY)
            if time.monotonic() - began_s < STARTING_S and len(kept) < len(acls.entries):
                mark.hit()
                acls = changed(acls, entries=kept)
            original(table, pattern, acls)

        return put

    replace("urteil.broker.security.acls.acl_table:AclTable.put", make)
