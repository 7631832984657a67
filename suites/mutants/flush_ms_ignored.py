"""Reports no log as due for a flush."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "flush.ms is ignored: logs are flushed only when they roll"
MODELS = "a forgotten flush task"
SCENARIO = "power-cut-all"
GUARANTEE = "lost_write"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def start_flush(duties: Any, log: Any, now_ms: int) -> None:
            if now_ms - log.flushed_ms >= log.config.flush_ms:
                mark.hit()
                log.flushed_ms = now_ms
            original(duties, log, now_ms)

        return start_flush

    replace("urteil.broker.log.maintenance:Maintenance._start_flush", make)
