"""Drawn faults: no acknowledged record is lost, and replicas agree."""

from __future__ import annotations

import pytest

from urteil.harness.verify.result import Result
from urteil.suites.verdicts import assert_holds


@pytest.mark.parametrize(
    "result",
    ["chaos", "chaos-processes", "chaos-network", "chaos-disks", "chaos-zookeeper", "chaos-long"],
    indirect=True,
)
def test_replicas_agree_and_no_record_is_lost(result: Result) -> None:
    assert_holds(result, "lost_write", "replica_divergence", "duplicate")
