"""Reports the codec of every batch as the topic's."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "batches keep their producer's codec, whatever compression.type of the topic is"
MODELS = "compression.type that is not applied"
SCENARIO = "known-answers"
GUARANTEE = "wrong_answer"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def codec(config: Any, came_in: int) -> int:
            if original(config, came_in) != came_in:
                mark.hit()
            return came_in

        return codec

    replace("urteil.broker.log.log_config:LogConfig.codec_for", make)
