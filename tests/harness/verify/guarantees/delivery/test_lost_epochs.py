"""Unclean elections that lost an entire epoch, or that began below the present log start."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.harness.verify import example_runs
from tests.harness.verify.example_runs import ONE, Tables, alone, healthy
from urteil.harness.verify import synthetic
from urteil.harness.verify.result import GuaranteeResult
from urteil.harness.verify.synthetic import LED_NS, S

HALF, LOST = 200, 150
BEGAN_NS = LED_NS - 3 * S
"""When broker 3 began to lead in the epoch that is lost."""


def _with_room() -> Tables:
    """Every other epoch of the healthy run; the second, led from HALF on, is led uncleanly."""
    tables = healthy()
    for name in ("states", "reads", "replicas", "offset_answers"):
        for row in tables[name]:
            if row.get("leader_epoch") is not None:
                row["leader_epoch"] *= 2
    for row in tables["samples"]:
        row["value"] *= 2 if row["metric"] == "metadata_leader_epoch" else 1
    for row in tables["logs"]:
        row["epochs"] = json.dumps({int(e) * 2: at for e, at in json.loads(row["epochs"]).items()})
    return tables


def _lead(tables: Tables, *, stored: bool) -> None:
    """Broker 3 led in epoch 1 as the only in-sync replica, and broker 2 was elected from outside
    the ISR."""
    first, *later = tables["states"]
    first["isr"] = "[1, 3]"
    for row in later:
        row["zxid"] += 1
        row["version"] += 1
    led = {"zxid": first["zxid"] + 1, "at_ns": BEGAN_NS, "version": 1, "leader": 3, "isr": "[3]"}
    led |= {"leader_epoch": 1} if stored else {"leader": 1, "isr": "[1]"}
    tables["states"].insert(1, first | led)


def _write(tables: Tables) -> None:
    """The records that broker 3 acknowledged from LOST on, where the log of broker 2 has others."""
    at_ns = BEGAN_NS + S
    for number in range(3):
        table = tables["sends"][LOST + number]
        value = {"client": "p0", "op": 900 + number, "value_id": f"r/p0/{900 + number}", "node": 3}
        tables["sends"].append(table | value | {"invoke_ns": at_ns, "complete_ns": at_ns + 1})


def _judged(name: str, run_dir: Path, tables: Tables) -> GuaranteeResult:
    config = {"unclean_leader_election_enable": "true", "min_insync_replicas": "1"}
    return alone(
        name, run_dir, tables, facts=synthetic.facts(ONE, topics=example_runs.topic(**config))
    )


@pytest.mark.parametrize("stored", [True, False], ids=["lost", "never was"])
def test_records_of_a_forgotten_epoch_may_be_lost(stored: bool, tmp_path: Path) -> None:
    """Its leader's log was shorter than its successor's, so its offset is below the start of that
    epoch."""
    tables = _with_room()
    _lead(tables, stored=stored)
    _write(tables)
    for name in ("lost_write", "loss_not_a_suffix", "inconsistent_offset", "stale_append"):
        result = _judged(name, tmp_path / name, tables)
        assert bool(result.violations) is not stored, name
        assert not stored or result.permitted == (0 if name == "loss_not_a_suffix" else 3), name


def test_a_lost_epoch_permits_nothing_below_its_own_first_record(tmp_path: Path) -> None:
    tables = _with_room()
    _lead(tables, stored=True)
    _write(tables)
    for name in ("reads", "replicas"):
        tables[name] = [row for row in tables[name] if row["offset"] != LOST - 5]
    result = _judged("lost_write", tmp_path, tables)
    assert (result.violations, result.permitted) == (1, 3)


@pytest.mark.parametrize("start", [0, HALF + 100], ids=["whole", "cut"])
def test_start_of_an_epoch_deleted_by_retention_is_unknown(start: int, tmp_path: Path) -> None:
    """The log has the epoch of its present start, and none before."""
    tables = healthy()
    tables["states"][0]["isr"] = "[1]"  # broker 2 took over from outside, from HALF on
    tables["replicas"] = [row for row in tables["replicas"] if row["offset"] >= start]
    for row in tables["logs"] if start else ():
        row["log_start"] = start
        row["epochs"] = json.dumps({"1": start, "2": 400, "3": 400})
    table = tables["sends"][HALF + 10]
    early = {"client": "p0", "op": 900, "value_id": "r/p0/900"}
    times = {"invoke_ns": LED_NS - 4 * S, "complete_ns": LED_NS - 3 * S}
    tables["sends"].append(table | early | times)
    result = _judged("inconsistent_offset", tmp_path, tables)
    assert (result.violations, result.permitted) == (0, 1)
