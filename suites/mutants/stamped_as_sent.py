"""A topic of LogAppendTime keeps the times that its clients give."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "records of LogAppendTime keep their client's time, whatever the answer says"
MODELS = "a batch that is let in as it came (KIP-32)"
SCENARIO = "known-answers"
GUARANTEE = "wrong_answer"


def apply(mark: Mark) -> None:
    """Such a batch is taken to be right as it is."""

    def make(original: Function) -> Function:
        def written(header: Any, batch: Any, newest_ms: int, config: Any, now_ms: int) -> Any:
            if not config.log_append_time:
                return original(header, batch, newest_ms, config, now_ms)
            mark.hit()
            return None

        return written

    replace("urteil.broker.log.admission:_written", make)
