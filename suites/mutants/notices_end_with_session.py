"""A watch that a session takes with it is set again once, and heard no more."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "who has a new ZooKeeper session hears of no change of rights, passwords or settings"
MODELS = "watches on change notifications that are not set again after an expiry"
SCENARIO = "rights-cut-off"
GUARANTEE = "unauthorised"


def apply(mark: Mark) -> None:
    """Listen to the first session alone."""
    first: dict[int, int] = {}

    def make(original: Function) -> Function:
        def on_watch(notices: Any, path: str) -> None:
            session = notices._zk.session_id
            if first.setdefault(id(notices), session) == session:
                original(notices, path)
            else:
                mark.hit()

        return on_watch

    replace("urteil.broker.zookeeper.notices:Notices._on_watch", make)
