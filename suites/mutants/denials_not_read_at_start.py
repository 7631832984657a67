"""A broker that starts reads who may, and not who may not."""

from __future__ import annotations

import time
from dataclasses import replace as changed
from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a broker takes in no denials that there are when it starts"
MODELS = "an initial load of ACLs that knows one of the two kinds"
SCENARIO = "rights-crash"
GUARANTEE = "unauthorised"
STARTING_S = 3.0


def apply(mark: Mark) -> None:
    """What the first seconds tell is what there is."""
    from urteil.broker.security.acls import Permission

    began_s = time.monotonic()

    def make(original: Function) -> Function:
        def put(table: Any, pattern: Any, acls: Any) -> None:
            kept = tuple(one for one in acls.entries if one.permission is not Permission.DENY)
            if time.monotonic() - began_s < STARTING_S and len(kept) < len(acls.entries):
                mark.hit()
                acls = changed(acls, entries=kept)
            original(table, pattern, acls)

        return put

    replace("urteil.broker.security.acl_table:AclTable.put", make)
