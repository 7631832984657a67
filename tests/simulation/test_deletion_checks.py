"""Checks of deletions, of groups without members, of copiers and of repetitions pass sound evidence
and find each damage."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.simulation.deletion_damage import (
    DAMAGE,
    copy,
    delete,
    keep_a_deleted_record_on_a_replica,
    keep_a_deleted_record_on_the_leader,
    read_offsets,
    read_stable,
    reject_a_repetition,
    return_a_deleted_offset,
)
from tests.simulation.group_damage import lead
from tests.simulation.test_checks import findings_of, sound, state
from urteil.suites.simulation.coordinators import Coordinators
from urteil.suites.simulation.disturbances import DOWN, Disturbance
from urteil.suites.simulation.evidence import OFFSETS_STATE, Evidence
from urteil.suites.simulation.zookeeper import Change


@pytest.mark.parametrize(
    "evidence_of", [delete, read_offsets, copy], ids=lambda evidence_of: evidence_of.__name__
)
def test_evidence_without_damage_passes(evidence_of: Callable[[Evidence], None]) -> None:
    evidence = sound()
    evidence_of(evidence)
    assert findings_of(evidence) == []


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: damage.__name__)
def test_check_of_deletions_finds_its_damage(damage: Callable[[Evidence], None]) -> None:
    evidence = sound()
    damage(evidence)
    assert DAMAGE[damage] in {finding.guarantee for finding in findings_of(evidence)}


def test_broker_that_ends_before_its_checkpoint_may_forget_a_deletion() -> None:
    evidence = sound()
    keep_a_deleted_record_on_a_replica(evidence)
    evidence.disturbances.append(Disturbance(DOWN, ("b2",), 51.0, 52.0))
    assert findings_of(evidence) == []


def test_deposed_leader_may_have_deleted_records() -> None:
    evidence = sound()
    keep_a_deleted_record_on_the_leader(evidence)
    evidence.changes.append(state(55, 2, [1, 2], 1))
    evidence.replicas[("t", 0)].reverse()
    assert "undeleted_records" not in {finding.guarantee for finding in findings_of(evidence)}


@pytest.mark.parametrize("at_s", [50.05, 52.0, 58.0])
def test_deletion_by_a_coordinator_that_is_deposed_soon_may_be_lost(at_s: float) -> None:
    evidence = sound()
    return_a_deleted_offset(evidence)
    lead(evidence, at_s, 2)
    lead(evidence, at_s + 1, 1)
    assert findings_of(evidence) == []


def test_transaction_that_timed_out_may_leave_a_stable_offset() -> None:
    evidence = sound()
    copy(evidence)
    read_stable(evidence, 1, 27.0, within=2)
    assert findings_of(evidence) == []


def test_repetition_after_an_election_may_be_rejected() -> None:
    evidence = sound()
    reject_a_repetition(evidence)
    evidence.changes.append(state(8, 1, [1, 2], 1))
    assert findings_of(evidence) == []


def test_coordinator_that_is_elected_again_takes_over_anew() -> None:
    evidence = sound()
    for epoch, isr in ((0, "[2, 1]"), (0, "[2]"), (1, "[2]")):
        data = f'{{"leader": 2, "leader_epoch": {epoch}, "isr": {isr}}}'.encode()
        number = len(evidence.changes)
        evidence.changes.append(Change(float(number), number, OFFSETS_STATE, data, 0))
    elected_s = evidence.changes[-1].at_s
    assert Coordinators(evidence).at(elected_s + 1) == (2, elected_s)
    assert Coordinators(evidence).at(elected_s - 1)[1] < elected_s - 1
