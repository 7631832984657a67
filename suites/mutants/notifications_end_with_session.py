"""Watches change notifications in the first ZooKeeper session only."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "after a new ZooKeeper session a broker ignores changes of ACLs, credentials and settings"
MODELS = "notification watches that are not set again after an expiry"
SCENARIO = "rights-cut-off"
GUARANTEE = "unauthorised"


def apply(mark: Mark) -> None:
    first: dict[int, int] = {}

    def make(original: Function) -> Function:
        def on_watch(notices: Any, path: str) -> None:
            session = notices._zk.session_id
            if first.setdefault(id(notices), session) == session:
                original(notices, path)
            else:
                mark.hit()

        return on_watch

    replace("urteil.broker.zookeeper.change_notifications:ChangeNotifications._on_watch", make)
