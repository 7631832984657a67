"""Checks of lookups and polls pass sound evidence and find each damage."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.simulation.lookup_damage import DAMAGE, find_too_late, look_up
from tests.simulation.test_checks import PLACE, findings_of, sound
from urteil.suites.simulation.evidence import Evidence


def test_correct_lookups_pass() -> None:
    evidence = sound()
    look_up(evidence)
    assert findings_of(evidence) == []


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: damage.__name__)
def test_check_of_lookups_finds_its_damage(damage: Callable[[Evidence], None]) -> None:
    evidence = sound()
    damage(evidence)
    assert DAMAGE[damage] in {finding.guarantee for finding in findings_of(evidence)}


def test_lookup_by_timestamp_passes_over_deleted_records() -> None:
    evidence = sound()
    find_too_late(evidence)
    evidence.history.deleted_places.add(PLACE)
    assert "time_index_wrong" not in {finding.guarantee for finding in findings_of(evidence)}
