"""Checks of the recovery pass sound evidence and find each damage."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.simulation.recovery_damage import DAMAGE, elect_well
from tests.simulation.test_checks import findings_of, sound
from urteil.suites.simulation.evidence import Evidence


def test_recovery_without_damage_passes() -> None:
    evidence = sound()
    elect_well(evidence)
    names = {finding.guarantee for finding in findings_of(evidence)}
    assert names.isdisjoint(DAMAGE.values())


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: damage.__name__)
def test_check_of_the_recovery_finds_its_damage(damage: Callable[[Evidence], None]) -> None:
    evidence = sound()
    damage(evidence)
    assert DAMAGE[damage] in {finding.guarantee for finding in findings_of(evidence)}
