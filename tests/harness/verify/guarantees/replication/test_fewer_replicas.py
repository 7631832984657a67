"""A partition with fewer replicas than min.insync.replicas, by reassignment, accepts writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.verify.example_runs import alone, healthy


@pytest.mark.parametrize(("replicas", "is_broken"), [("[2]", False), ("[1, 2, 3]", True)])
def test_min_isr_is_capped_by_the_replica_count(
    replicas: str, is_broken: bool, tmp_path: Path
) -> None:
    tables = healthy()
    for row in tables["states"]:
        if row["leader"] == 2:
            row |= {"isr": "[2]", "replicas": replicas}
    result = alone("ack_below_min_isr", tmp_path, tables)
    assert (result.violations > 0) is is_broken
