"""A leader of KRaft's quorum that goes on after the election of its successor is found."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.harness.verify.example_runs import ONE
from urteil.harness.scenario import ClusterSpec
from urteil.harness.verify import synthetic
from urteil.harness.verify.derived.deposed_controllers import deposed_rows
from urteil.harness.verify.limits import SECOND_NS as S

OLD, NEW = 1001, 1002
LIMIT_S = 13
Version = tuple[int, int, int, int | None]
"""Seconds, controller, epoch, and the leader that its file names."""
LED: list[Version] = [(0, OLD, 1, OLD), (10, NEW, 3, NEW)]


def _fault(target: str, begin_s: int, end_s: int, *, acted: bool = True) -> dict[str, Any]:
    return {
        "targets": json.dumps([target]), "fault": "unnamed", "acted": acted,
        "begin_ns": begin_s * S, "end_ns": end_s * S, "healed_ns": end_s * S,
    }  # fmt: skip


def _rows(
    versions: list[Version], *faults: dict[str, Any], timeout_ms: int | None = None
) -> list[dict[str, Any]]:
    votes = [
        {"broker": broker, "epoch": epoch, "leader": leader, "voters": None, "directory": None}
        | {"candidate": None, "position": position, "at_ns": at_s * S}
        for position, (at_s, broker, epoch, leader) in enumerate(versions)
    ]
    config = {"controller.quorum.fetch.timeout.ms": str(timeout_ms)} if timeout_ms else {}
    cluster = ClusterSpec(brokers=3, controllers=3, config=config)
    scenario = synthetic.scenario(ONE, target="kafka:4.1.2", cluster=cluster)
    return deposed_rows(votes, faults, scenario)


@pytest.mark.parametrize(
    ("versions", "faults", "judged"),
    [
        ([*LED, (24, OLD, 3, NEW)], [], [(10, 24, 1)]),
        ([*LED, (12, OLD, 2, None)], [], [(10, 12, 0)]),
        ([*LED, (23, OLD, 3, NEW)], [], [(10, 23, 0)]),
        ([(0, OLD, 1, OLD), (8, OLD, 2, None), (10, NEW, 3, NEW)], [], []),
        ([(0, OLD, 1, OLD), (10, NEW, 3, None), (40, OLD, 3, None)], [], []),
        ([(0, OLD, 1, OLD), (10, NEW, 1, OLD), (40, OLD, 2, None)], [], []),
        ([*LED, (40, OLD, 3, NEW)], [_fault("q1->q2", 5, 38)], [(10, 40, 1)]),
        ([*LED, (40, OLD, 3, NEW)], [_fault("q1", 5, 38)], [(38, 40, 0)]),
        ([*LED, (40, OLD, 3, NEW)], [_fault("q1", 5, 38, acted=False)], [(10, 40, 1)]),
        ([*LED, (40, OLD, 3, NEW)], [_fault("q2", 5, 38)], [(10, 40, 1)]),
    ],
    ids=["too late", "in time", "at the limit", "before its successor", "no successor",
         "a follower learns of it", "a cut link", "a fault on it", "a fault that did not act",
         "a fault on another one"],
)  # fmt: skip
def test_time_after_the_election_of_a_successor_is_judged(
    versions: list[Version], faults: list[dict[str, Any]], judged: list[tuple[int, int, int]]
) -> None:
    rows = _rows(versions, *faults)
    assert [(row["from_ns"] // S, row["to_ns"] // S, row["late"]) for row in rows] == judged


def test_limit_follows_the_fetch_timeout() -> None:
    versions: list[Version] = [*LED, (24, OLD, 3, NEW)]
    assert [row["limit_s"] for row in _rows(versions)] == [LIMIT_S]
    assert [row["late"] for row in _rows(versions, timeout_ms=4000)] == [0]
