"""Batches that the broker compresses lose the times of their records."""

from __future__ import annotations

from urteil.suites.mutants.patching import Mark
from urteil.suites.mutants.repacking import change_repacked

ABOUT = "a batch that is packed anew has the time of its first record throughout"
MODELS = "deltas of times that get lost on the way through a codec"
SCENARIO = "rewritten"
GUARANTEE = "corrupt"


def apply(mark: Mark) -> None:
    """All records of the batch get the first one's time."""

    change_repacked(mark, lambda records: [(*record[:3], records[0][3]) for record in records])
