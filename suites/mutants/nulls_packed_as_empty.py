"""Nothing, and something that is empty, look alike in a buffer."""

from __future__ import annotations

from urteil.suites.mutants.patching import Mark
from urteil.suites.mutants.repacking import change_repacked

ABOUT = "records without a value have an empty one when their batch is packed anew"
MODELS = "a null and an empty value told apart by nobody: tombstones that are none"
SCENARIO = "known-answers"
GUARANTEE = "wrong_answer"


def apply(mark: Mark) -> None:
    """Pack what is not there as what has no bytes."""

    change_repacked(
        mark,
        lambda records: [
            (key, value or b"", headers, time_ms) for key, value, headers, time_ms in records
        ],
    )
