"""Links cut in odd shapes, or working badly: nothing is lost, nothing twice, all agree."""

from __future__ import annotations

import pytest

from urteil.harness.verify.result import Result
from urteil.suites.verdicts import assert_holds


@pytest.mark.parametrize(
    "result", ["bridge", "ring", "client-from-leader", "zookeeper-split"], indirect=True
)
def test_a_partition_of_any_shape_does_no_harm(result: Result) -> None:
    assert_holds(result, "lost_write", "replica_divergence", "unclean_leader", "epoch_went_back")


@pytest.mark.parametrize(
    "result",
    ["narrow-links", "rough-links", "resets", "cut-requests", "flapping-links"],
    indirect=True,
)
def test_bad_links_lose_and_double_nothing(result: Result) -> None:
    assert_holds(result, "lost_write", "replica_divergence", "duplicate")


@pytest.mark.parametrize(
    "result", ["crash-loop", "hungry-leader", "out-of-descriptors"], indirect=True
)
def test_a_broker_that_hardly_lives_does_no_harm(result: Result) -> None:
    assert_holds(result, "lost_write", "replica_divergence", "duplicate")
