"""Checks of files, of leader epochs and of shutdowns pass sound evidence and find each damage."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.simulation.disk_damage import (
    DAMAGE,
    begin_epoch_one,
    hand_over,
    have_files,
    shut_down_beside_a_cut,
)
from tests.simulation.test_checks import findings_of, sound
from urteil.suites.simulation.evidence import Evidence


def guarantees_of(evidence: Evidence) -> set[str]:
    return {finding.guarantee for finding in findings_of(evidence)}


@pytest.mark.parametrize(
    "evidence_of",
    [have_files, begin_epoch_one, hand_over, shut_down_beside_a_cut],
    ids=lambda evidence_of: evidence_of.__name__,
)
def test_evidence_without_damage_passes(evidence_of: Callable[[Evidence], None]) -> None:
    evidence = sound()
    evidence_of(evidence)
    assert guarantees_of(evidence).isdisjoint(DAMAGE.values())


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: damage.__name__)
def test_check_of_disks_finds_its_damage(damage: Callable[[Evidence], None]) -> None:
    evidence = sound()
    damage(evidence)
    assert DAMAGE[damage] in guarantees_of(evidence)
