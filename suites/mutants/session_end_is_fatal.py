"""A broker whose ZooKeeper session ended ends, too."""

from __future__ import annotations

import os
from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a broker that hears that its ZooKeeper session expired exits"
MODELS = "services that take the end of their session for their own, as region servers of HBase do"
SCENARIO = "session-expired"
GUARANTEE = "unexpected_exit"


def apply(mark: Mark) -> None:
    """The end."""

    def make(original: Function) -> Function:
        def changed(session: Any, state: Any, session_id: int) -> None:
            original(session, state, session_id)
            if session.state.name == "EXPIRED":
                mark.hit()
                os._exit(1)

        return changed

    replace("urteil.broker.zookeeper.session:Session._changed", make)
