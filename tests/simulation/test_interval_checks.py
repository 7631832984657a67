"""Checks of undisturbed intervals pass sound evidence and find each damage."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.simulation import interval_damage
from tests.simulation.interval_damage import DAMAGE
from tests.simulation.test_checks import findings_of, sound
from urteil.suites.simulation.disturbances import CUT, DOWN, SESSION, SLOW, Disturbance
from urteil.suites.simulation.evidence import Evidence

SOUND = (interval_damage.be_quiet, interval_damage.send_in_calm)


def guarantees_of(evidence: Evidence) -> set[str]:
    return {finding.guarantee for finding in findings_of(evidence)}


@pytest.mark.parametrize("evidence_of", SOUND, ids=lambda each: each.__name__)
def test_undisturbed_interval_without_damage_passes(
    evidence_of: Callable[[Evidence], None],
) -> None:
    evidence = sound()
    evidence_of(evidence)
    assert findings_of(evidence) == []


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: damage.__name__)
def test_check_of_undisturbed_intervals_finds_its_damage(
    damage: Callable[[Evidence], None],
) -> None:
    evidence = sound()
    damage(evidence)
    assert DAMAGE[damage] in guarantees_of(evidence)


@pytest.mark.parametrize(
    ("kind", "ends"),
    [
        (DOWN, ("b1",)),
        (DOWN, ("b2",)),
        (CUT, ("zk", "b1")),
        (CUT, ("b1", "b2")),
        (CUT, ("b3", "b2")),
        (CUT, ("b1", "q")),
        (SLOW, ("b3", "b1")),
    ],
)
def test_disturbance_of_leader_or_controller_explains_a_stall(
    kind: str, ends: tuple[str, ...]
) -> None:
    evidence = sound()
    interval_damage.stall_a_partition(evidence)
    evidence.disturbances.append(Disturbance(kind, ends, 0.0, interval_damage.ENDS_S))
    assert guarantees_of(evidence).isdisjoint({"stalled_partition", "stalled_producer"})


@pytest.mark.parametrize(
    ("kind", "ends"),
    [(DOWN, ("b3",)), (CUT, ("b1", "b3")), (CUT, ("zk", "b3")), (SESSION, ("b1",))],
)
def test_disturbance_of_another_broker_explains_no_stall(kind: str, ends: tuple[str, ...]) -> None:
    evidence = sound()
    interval_damage.stall_a_partition(evidence)
    end_s = 11.0 if kind == SESSION else interval_damage.ENDS_S
    evidence.disturbances.append(Disturbance(kind, ends, 11.0, end_s))
    assert "stalled_producer" in guarantees_of(evidence)


def test_partition_with_too_small_an_isr_may_stand_still() -> None:
    evidence = sound()
    interval_damage.stall_a_partition(evidence)
    evidence.min_isr = 4
    assert "stalled_partition" not in guarantees_of(evidence)


def test_fetch_from_a_follower_may_wait() -> None:
    evidence = sound()
    interval_damage.answer_fetches_late(evidence)
    evidence.history.polls = [poll._replace(node=2) for poll in evidence.history.polls]
    assert "slow_fetch" not in guarantees_of(evidence)
