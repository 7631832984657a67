"""Checks of a group's members pass sound evidence and find each damage."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.simulation.group_damage import (
    DAMAGE,
    beat,
    have_members,
    keep_who_left,
    lead,
)
from tests.simulation.test_checks import findings_of, sound
from urteil.suites.simulation.evidence import Evidence


def test_group_without_damage_passes() -> None:
    evidence = sound()
    have_members(evidence)
    assert findings_of(evidence) == []


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: damage.__name__)
def test_check_of_a_group_finds_its_damage(damage: Callable[[Evidence], None]) -> None:
    evidence = sound()
    damage(evidence)
    assert DAMAGE[damage] in {finding.guarantee for finding in findings_of(evidence)}


def test_member_of_a_deposed_coordinator_may_be_expelled() -> None:
    """It sent its last heartbeat to a broker that no longer led."""
    evidence = sound()
    have_members(evidence)
    lead(evidence, 10.5, 2)
    beat(evidence, 18.0, node=2, error="UNKNOWN_MEMBER_ID")
    assert findings_of(evidence) == []


def test_member_that_stalled_for_a_session_may_be_expelled_before_a_takeover() -> None:
    evidence = sound()
    have_members(evidence)
    lead(evidence, 17.5, 2)
    beat(evidence, 18.0, node=2, error="UNKNOWN_MEMBER_ID")
    assert findings_of(evidence) == []


def test_departure_around_a_new_coordinator_is_not_judged() -> None:
    evidence = sound()
    keep_who_left(evidence)
    lead(evidence, 22.0, 2)
    assert findings_of(evidence) == []
