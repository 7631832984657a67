"""Elections by a controller that was replaced."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.verify.example_runs import alone, copy_of, healthy
from urteil.harness.verify.damage.cluster import elect_by_deposed
from urteil.harness.verify.damage.copy import S


@pytest.mark.parametrize(
    ("moved", "expected"),
    [
        ({}, ["deposed controller"]),
        ({"leader_epoch": -1}, []),  # the ISR alone changed
        ({"controller_epoch": 1}, []),
        ({"at_ns": -S - S // 2}, []),  # the newer one was elected just before
    ],
)
def test_former_controller_elects_no_leader(
    moved: dict[str, int], expected: list[str], tmp_path: Path
) -> None:
    tables = healthy()
    elect_by_deposed(copy_of(tables))
    for name, by in moved.items():
        tables["states"][-1][name] += by
    result = alone("epoch_went_back", tmp_path, tables)
    assert [finding.sub_kind for finding in result.findings] == expected
