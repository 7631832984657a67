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
        def crc_ok(batch: Any) -> bool:
            if not original(batch):
                mark.hit()
            return True

        return crc_ok

    replace("urteil.broker.log.batch_checks:crc_ok", make)
