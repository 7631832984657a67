"""compression.type is a setting like others, and nobody looks."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "batches stay in the codec that they came in, whatever their topic has"
MODELS = "compression.type that nobody applies"
SCENARIO = "known-answers"
GUARANTEE = "wrong_answer"


def apply(mark: Mark) -> None:
    """Every codec is right."""

    def make(original: Function) -> Function:
        def codec(config: Any, came_in: int) -> int:
            if original(config, came_in) != came_in:
                mark.hit()
            return came_in

        return codec

    replace("urteil.broker.log.log_config:LogConfig.codec_for", make)
