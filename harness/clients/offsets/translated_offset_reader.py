"""Reads a group's committed offsets in the second cluster, where MirrorMaker writes their
translations.

    python -m urteil.harness.clients.offsets.translated_offset_reader SPEC.json

A consumer that goes on there would begin at the offsets that a read shows, and skip all records
below them (`translated_too_far`).
"""

from __future__ import annotations

from urteil.harness.clients.client_main import run_client
from urteil.harness.clients.kind import Belongs, ClientKind, Stage
from urteil.harness.clients.offsets.committed_offset_reader import read_positions
from urteil.harness.clients.workload_kinds import member_count
from urteil.harness.scenario import Scenario


def _count(scenario: Scenario) -> int:
    """One if a group in the first cluster has positions to translate."""
    return int(scenario.second is not None and bool(member_count(scenario.workload)))


KIND = ClientKind(
    name="translations",
    about="Reads the group's committed offsets in the second cluster again and again.",
    stage=Stage.OBSERVATION,
    judged_by=("translated_too_far",),
    prefix="w",
    count=_count,
    work=read_positions,
    belongs=Belongs.TO_SECOND,
    group=lambda spec: spec.workload.group,
)

if __name__ == "__main__":
    run_client(KIND)
