"""A follower in a session is not told of a high watermark that moves without records."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a fetch session keeps the high watermark to itself until there are records"
MODELS = "KIP-227's sessions without news of watermarks"
SCENARIO = "known-answers"
GUARANTEE = "wrong_answer"


def apply(mark: Mark) -> None:
    """No news is told of what is idle."""

    def make(original: Function) -> Function:
        def still(cached: Any) -> Any:
            told = original(cached)
            if told is not None:
                mark.hit()
            return None

        return still

    replace("urteil.broker.server.fetch_session:_Cached.still", make)
