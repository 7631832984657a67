"""A replica that was never healed may hold a divergent suffix; a healed one may not."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.harness.verify.example_runs import ONE, Tables, alone, healthy, judged, named
from urteil.harness.verify import synthetic
from urteil.harness.verify.derived.lineage import agreed_end
from urteil.harness.verify.result import Status


@pytest.mark.parametrize(
    ("epochs", "end", "other", "other_end", "agreed"),
    [
        ({0: 0}, 10, {0: 0}, 12, 10),
        ({0: 0}, 15, {0: 0, 1: 12}, 20, 12),
        ({0: 0, 2: 12}, 15, {0: 0, 1: 10, 3: 14}, 20, 10),
        ({0: 0, 1: 5}, 9, {0: 0, 1: 5, 2: 9}, 20, 9),
        ({4: 0}, 9, {5: 0}, 9, 0),
        ({}, 9, {0: 0}, 9, 0),
    ],
)
def test_logs_agree_to_the_end_of_their_last_shared_epoch(
    epochs: dict[int, int], end: int, other: dict[int, int], other_end: int, agreed: int
) -> None:
    assert agreed_end(epochs, end, other, other_end) == agreed
    assert agreed_end(other, other_end, epochs, end) == agreed


def deposed(tables: Tables) -> Tables:
    """Broker 2 appended in epoch 0 the records that other replicas have in epoch 1."""
    for row in tables["logs"]:
        if row["broker"] == 2:
            row["epochs"] = '{"0": 0}'
    for row in tables["replicas"]:
        if row["broker"] == 2:
            row["leader_epoch"] = 0
    return tables


@pytest.mark.parametrize(("offset", "epoch"), [(0, 1), (10, -1), (ONE.records - 1, 0)])
def test_record_of_an_unknown_epoch_is_found(tmp_path: Path, offset: int, epoch: int) -> None:
    tables = healthy()
    for row in tables["replicas"]:
        row["leader_epoch"] = epoch if row["offset"] == offset else row["leader_epoch"]
    (finding,) = alone("epoch_lineage", tmp_path, tables).findings
    assert (finding.sub_kind, finding.offset) == ("outside", offset)


@pytest.mark.parametrize(("healed", "status"), [(False, Status.HOLDS), (True, Status.VIOLATED)])
def test_replicas_must_agree_once_the_lab_has_healed(
    tmp_path: Path, healed: bool, status: Status
) -> None:
    facts = msgspec.structs.replace(synthetic.facts(ONE), healed=healed)
    result = judged(tmp_path, deposed(healthy()), facts=facts)
    assert named(result, "replica_divergence").status is status
