"""Faults that leave a quorum of KRaft without a majority leave its cluster without a controller."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.harness.verify.example_runs import ONE
from urteil.chaos.effects import Effect
from urteil.harness.scenario import ClusterSpec
from urteil.harness.verify import synthetic
from urteil.harness.verify.derived.intervals import Interval
from urteil.harness.verify.derived.quorum_losses import quorum_losses

THREE, TWO = ClusterSpec(brokers=3), ClusterSpec(brokers=2)
SEPARATE = ClusterSpec(brokers=3, controllers=3)


def _fault(
    *targets: str, begin_ns: int, end_ns: int, effect: Effect | None = None
) -> dict[str, Any]:
    links = any("->" in target for target in targets)
    effect = effect or (Effect.CUTS_LINKS if links else Effect.KILLS_NODES)
    return {
        "targets": json.dumps(targets), "effects": json.dumps([effect]), "fault": "unnamed",
        "begin_ns": begin_ns, "end_ns": end_ns, "healed_ns": end_ns, "acted": True,
    }  # fmt: skip


def _losses(*faults: dict[str, Any], cluster: ClusterSpec, target: str = "kafka:4.1.2",
            second: ClusterSpec | None = None) -> list[Interval]:  # fmt: skip
    scenario = synthetic.scenario(ONE, target=target, cluster=cluster, second=second)
    return quorum_losses(faults, scenario)


@pytest.mark.parametrize(
    ("faults", "cluster", "losses"),
    [
        ([_fault("b2", begin_ns=1, end_ns=9)], THREE, []),
        ([_fault("b2", begin_ns=1, end_ns=9)], TWO, [(1, 9)]),
        ([_fault("b2", begin_ns=1, end_ns=9) | {"acted": False}], TWO, []),
        ([_fault("b1", "b2", begin_ns=1, end_ns=9)], THREE, [(1, 9)]),
        ([_fault("b1", "b2", begin_ns=1, end_ns=9)], SEPARATE, []),
        ([_fault("q1", begin_ns=1, end_ns=6), _fault("q3", begin_ns=4, end_ns=9)], SEPARATE,
         [(4, 6)]),
        ([_fault("q1", begin_ns=1, end_ns=4), _fault("q3", begin_ns=4, end_ns=9)], SEPARATE, []),
        ([_fault("q1->q2", begin_ns=1, end_ns=9)], SEPARATE, []),
        ([_fault("q1->q2", "q2->q3", "q3->q1", begin_ns=1, end_ns=9)], SEPARATE, [(1, 9)]),
        ([_fault("q1->q2", begin_ns=1, end_ns=9), _fault("q3", begin_ns=2, end_ns=5)], SEPARATE,
         [(2, 5)]),
        ([_fault("q1", "q2", begin_ns=1, end_ns=9, effect=Effect.MOVES_CLOCKS)], SEPARATE, []),
    ],
    ids=["one of three", "one of two", "without effect", "two of three", "brokers alone",
         "two at once",
         "one after the other", "one link", "every link", "a link and the third voter", "clocks"],
)  # fmt: skip
def test_losses_last_while_no_majority_is_connected(
    faults: list[dict[str, Any]], cluster: ClusterSpec, losses: list[tuple[int, int]]
) -> None:
    assert _losses(*faults, cluster=cluster) == [Interval(*times) for times in losses]


def test_second_cluster_has_a_quorum_of_its_own() -> None:
    fault = _fault("b11", begin_ns=1, end_ns=9)
    assert _losses(fault, cluster=THREE, second=TWO) == [Interval(1, 9)]
    assert _losses(fault, cluster=THREE, second=THREE) == []


def test_zookeeper_has_no_voters() -> None:
    assert _losses(_fault("b1", "b2", begin_ns=1, end_ns=9), cluster=THREE, target="kafka") == []
