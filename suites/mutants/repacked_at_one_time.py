"""Gives all records of the batch the timestamp of the first one."""

from __future__ import annotations

from urteil.suites.mutants.patching import Mark
from urteil.suites.mutants.repacking import change_repacked

ABOUT = "a batch that the broker compresses again has one timestamp for all records"
MODELS = "timestamp deltas that are lost in a conversion"
SCENARIO = "rewritten"
GUARANTEE = "corrupt"


def apply(mark: Mark) -> None:
    change_repacked(mark, lambda records: [(*record[:3], records[0][3]) for record in records])
