"""Ends the process when the session expires."""

from __future__ import annotations

import os
from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a broker exits when its ZooKeeper session expires"
MODELS = "services that end with their session, as HBase's region servers do"
SCENARIO = "session-expired"
GUARANTEE = "unexpected_exit"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def changed(session: Any, state: Any, session_id: int) -> None:
            original(session, state, session_id)
            if session.state.name == "EXPIRED":
                mark.hit()
                os._exit(1)

        return changed

    replace("urteil.broker.zookeeper.session:Session._changed", make)
