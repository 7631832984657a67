"""Accepts every CRC."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a batch with a wrong CRC is appended and served"
MODELS = "no validation of produced batches"
SCENARIO = "corrupt-client"
GUARANTEE = "corrupt"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def is_crc_valid(batch: Any) -> bool:
            if not original(batch):
                mark.hit()
            return True

        return is_crc_valid

    replace("urteil.broker.log.batch_checks:is_crc_valid", make)
