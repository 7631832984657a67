"""Without comparable clocks it is unknown which records an election may have lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.verify import example_runs
from tests.harness.verify.example_runs import ONE, Tables, asked_for, healthy, judged, named
from urteil.harness.verify import synthetic
from urteil.harness.verify.result import Status, Verdict
from urteil.harness.verify.synthetic import S

LOST = 220
"""The first offsets of epoch 1 are those from 200 on."""


def _without(tables: Tables, offset: int) -> None:
    for name in ("reads", "replicas"):
        tables[name] = [row for row in tables[name] if row["offset"] != offset]


def _of_another_boot(tables: Tables) -> None:
    """The producers' times are those of another machine."""
    for row in tables["sends"]:
        row |= {name: row[name] + 10 * S for name in ("invoke_ns", "complete_ns")}
    for row in tables["clients"]:
        row["boot_id"] = "another" if row["kind"] == "producer" else row["boot_id"]


def _judged(run_dir: Path, tables: Tables, **config: str) -> Status:
    facts = synthetic.facts(ONE, topics=example_runs.topic(**config))
    with asked_for("lost_write"):
        result = judged(run_dir, tables, facts=facts)
    loss = named(result, "lost_write")
    assert result.verdict is (Verdict.FAIL if loss.status is Status.VIOLATED else Verdict.UNKNOWN)
    return loss.status


@pytest.mark.parametrize("acks", [1, -1])
def test_losses_permitted_by_acks_one_depend_on_times_alone(acks: int, tmp_path: Path) -> None:
    tables = healthy()
    for row in tables["sends"]:
        row["acks"] = acks
    _without(tables, LOST)
    assert _judged(tmp_path / "one", tables) is Status.VIOLATED
    _of_another_boot(tables)
    result = _judged(tmp_path / "two", tables)
    assert result is (Status.UNKNOWN if acks == 1 else Status.VIOLATED)


@pytest.mark.parametrize("unclean", [True, False])
def test_losses_permitted_by_unclean_elections_depend_on_times_alone(
    unclean: bool, tmp_path: Path
) -> None:
    tables = healthy()
    if unclean:
        states = sorted(tables["states"], key=lambda row: int(row["version"]))
        states[2]["isr"] = f"[{states[2]['leader']}]"
    _without(tables, LOST)
    _of_another_boot(tables)
    result = _judged(tmp_path, tables, unclean_leader_election_enable="true")
    assert result is (Status.UNKNOWN if unclean else Status.VIOLATED)
