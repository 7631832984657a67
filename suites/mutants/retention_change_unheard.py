"""One broker's logs keep the retention that they were made with."""

from __future__ import annotations

from dataclasses import replace as changed
from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a change of retention.ms does not reach the logs that one of the brokers has"
MODELS = "a broker with stale settings"
SCENARIO = "retention-changed"
GUARANTEE = "kept_too_long"
BROKER = "2"


def apply(mark: Mark) -> None:
    """The retention of before stays."""

    def make(original: Function) -> Function:
        def configure(manager: Any, overrides: Any, topic: str | None = None) -> None:
            before = {log: log.config.retention_ms for log in manager._logs.values()}
            original(manager, overrides, topic)
            for log, kept in before.items():
                if manager._props["broker.id"] == BROKER and log.config.retention_ms != kept:
                    mark.hit()
                    log.config = changed(log.config, retention_ms=kept)

        return configure

    replace("urteil.broker.log.log_manager:LogManager.configure", make)
