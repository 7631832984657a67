"""What administrators do at work costs nobody a record."""

from __future__ import annotations

import pytest

from urteil.harness.verify.result import Result
from urteil.suites.verdicts import assert_holds


@pytest.mark.parametrize("result", ["topics"], indirect=True)
def test_topics_come_and_go_beside_the_load(result: Result) -> None:
    assert_holds(result, "lost_write", "replica_divergence", "duplicate")


@pytest.mark.parametrize("result", ["reassign"], indirect=True)
def test_replicas_and_leaders_move_without_loss(result: Result) -> None:
    assert_holds(result, "lost_write", "replica_divergence", "unclean_leader", "epoch_went_back")
