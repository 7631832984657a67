"""Keeps the retention of a log when its settings change."""

from __future__ import annotations

from dataclasses import replace as changed
from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "one broker ignores a change of retention.ms"
MODELS = "a broker with stale settings"
SCENARIO = "retention-changed"
GUARANTEE = "kept_too_long"
BROKER = "2"


def apply(mark: Mark) -> None:
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
