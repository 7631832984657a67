"""Batches that the broker compresses lose the headers of their records."""

from __future__ import annotations

from urteil.suites.mutants.patching import Mark
from urteil.suites.mutants.repacking import change_repacked

ABOUT = "records of a batch that is packed anew have no headers"
MODELS = "a conversion that knows keys and values alone"
SCENARIO = "rewritten"
GUARANTEE = "corrupt"


def apply(mark: Mark) -> None:
    """Headers are left out."""

    change_repacked(mark, lambda records: [(*record[:2], (), record[3]) for record in records])
