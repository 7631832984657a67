"""The checks of administration find its anomalies, and excuse what a controller could not know."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.simulation.administration_damage import (
    CANCELLED_S,
    DAMAGE,
    DELETED_S,
    act,
    administer,
    keep_a_marked_folder,
    keep_a_moved_log,
    lose_a_topic,
    put,
)
from tests.simulation.test_checks import findings_of, sound
from urteil.suites.simulation.evidence import Evidence


def test_a_topic_with_an_open_act_is_not_judged_by_what_stands() -> None:
    evidence = sound()
    administer(evidence)
    act(evidence, "delete", "u2", None, 55.0, outcome="info")
    lose_a_topic(evidence)
    assert findings_of(evidence) == []


@pytest.mark.parametrize("path", ["/brokers/ids/3", "/controller"])
def test_log_of_a_replica_moved_off_an_absent_broker_may_stay(path: str) -> None:
    evidence = sound()
    administer(evidence)
    keep_a_moved_log(evidence)
    put(evidence, CANCELLED_S + 1, path, {})
    assert findings_of(evidence) == []


def test_marked_folder_may_stay_where_the_clock_was_wrong() -> None:
    evidence = sound()
    administer(evidence)
    keep_a_marked_folder(evidence)
    evidence.brokers_of_wrong_clocks.add(1)
    assert findings_of(evidence) == []


def test_log_of_a_deleted_topic_may_not_stay_on_a_broker_that_was_absent() -> None:
    evidence = sound()
    administer(evidence)
    evidence.folders[2].append("/data/u1-0")
    put(evidence, DELETED_S, "/brokers/ids/2", {})
    assert {finding.guarantee for finding in findings_of(evidence)} == {"leftover_log"}


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: damage.__name__)
def test_a_check_of_administration_finds_its_anomaly(damage: Callable[[Evidence], None]) -> None:
    evidence = sound()
    administer(evidence)
    damage(evidence)
    found = {finding.guarantee for finding in findings_of(evidence)}
    assert found == {DAMAGE[damage]}
