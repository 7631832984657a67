"""Removes the headers of all records."""

from __future__ import annotations

from urteil.suites.mutants.patching import Mark
from urteil.suites.mutants.repacking import change_repacked

ABOUT = "a batch that the broker compresses again loses its record headers"
MODELS = "a conversion of keys and values only"
SCENARIO = "rewritten"
GUARANTEE = "corrupt"


def apply(mark: Mark) -> None:
    change_repacked(mark, lambda records: [(*record[:2], (), record[3]) for record in records])
