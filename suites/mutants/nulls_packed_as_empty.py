"""Writes null values as empty ones when a batch is compressed again."""

from __future__ import annotations

from urteil.suites.mutants.patching import Mark
from urteil.suites.mutants.repacking import change_repacked

ABOUT = "a batch that the broker compresses again has empty values in place of nulls"
MODELS = "null and empty values confused: tombstones that delete nothing"
SCENARIO = "known-answers"
GUARANTEE = "wrong_answer"


def apply(mark: Mark) -> None:
    change_repacked(
        mark,
        lambda records: [
            (key, value or b"", headers, time_ms) for key, value, headers, time_ms in records
        ],
    )
