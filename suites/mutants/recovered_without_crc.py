"""Recovery takes every batch for sound."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "recovery after a crash looks at headers alone: what rotted in a segment stays"
MODELS = "a recovery that walks the batches without their checksums"
SCENARIO = "segment-damaged"
GUARANTEE = "corrupt"


def apply(mark: Mark) -> None:
    """A wrong CRC is right."""

    def make(original: Function) -> Function:
        def crc_ok(data: Any) -> bool:
            if not original(data):
                mark.hit()
            return True

        return crc_ok

    replace("urteil.broker.log.recovery:crc_ok", make)
