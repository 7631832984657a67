"""Partitions of any shape and bad links: no loss, no duplicates, replicas agree."""

from __future__ import annotations

import pytest

from urteil.harness.verify.result import Result
from urteil.suites.verdicts import assert_holds


@pytest.mark.parametrize(
    "result", ["bridge", "ring", "client-from-leader", "zookeeper-split"], indirect=True
)
def test_partition_of_any_shape_loses_nothing(result: Result) -> None:
    assert_holds(result, "lost_write", "replica_divergence", "unclean_leader", "epoch_went_back")


@pytest.mark.parametrize(
    "result",
    ["narrow-links", "rough-links", "resets", "cut-requests", "flapping-links"],
    indirect=True,
)
def test_bad_links_neither_lose_nor_duplicate_records(result: Result) -> None:
    assert_holds(result, "lost_write", "replica_divergence", "duplicate")


@pytest.mark.parametrize(
    "result", ["crash-loop", "hungry-leader", "out-of-descriptors"], indirect=True
)
def test_starved_broker_loses_nothing(result: Result) -> None:
    assert_holds(result, "lost_write", "replica_divergence", "duplicate")
