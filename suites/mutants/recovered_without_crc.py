"""Accepts every CRC in recovery."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "recovery after a crash checks batch headers only"
MODELS = "a recovery without checksums"
SCENARIO = "segment-damaged"
GUARANTEE = "corrupt"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def is_crc_valid(data: Any) -> bool:
            if not original(data):
                mark.hit()
            return True

        return is_crc_valid

    replace("urteil.broker.log.recovery:is_crc_valid", make)
