"""A partition whose last leader is not a replica any more, and left no records to the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.harness.verify.example_runs import ONE, Tables, alone, healthy
from urteil.harness.verify.result import Status
from urteil.harness.verify.synthetic import END_NS, S


def moved(ends: dict[int, int], replicas: str = "[1, 2]") -> Tables:
    """Broker 3 led last and is not a replica any more; of the others' logs the begins are left."""
    tables = healthy()
    last = tables["states"][-1]
    at_ns = max(row["at_ns"] for row in tables["states"]) + S
    gone: dict[str, Any] = {"at_ns": at_ns, "version": last["version"] + 1, "isr": "[3]"}
    gone |= {"zxid": last["zxid"] + 1, "leader_epoch": last["leader_epoch"] + 1}
    tables["states"].append(last | gone | {"leader": 3, "replicas": replicas})
    after = {"at_ns": at_ns + 1, "version": last["version"] + 2, "zxid": last["zxid"] + 2}
    tables["states"].append(tables["states"][-1] | after | {"leader": -1})
    tables["logs"] = [
        row | {"log_end": ends[row["broker"]], "high_watermark": 0, "epochs": "{}"}
        for row in tables["logs"]
        if row["broker"] in ends
    ]
    tables["replicas"] = [
        row for row in tables["replicas"] if row["offset"] < ends.get(row["broker"], 0)
    ]
    tables["passes"] = [row for row in tables["passes"] if not row["final"]]
    tables["reads"] = [row for row in tables["reads"] if row["read_ns"] < END_NS]
    return tables


def test_record_on_no_replica_is_lost(tmp_path: Path) -> None:
    for name, ends, left in (("all", {1: 0, 2: 0}, 0), ("some", {1: 0, 2: 100}, 100)):
        lost = alone("lost_write", tmp_path / name, moved(ends))
        assert lost.status is Status.VIOLATED
        assert lost.violations == ONE.records - left


def test_replica_without_a_log_may_hold_the_record(tmp_path: Path) -> None:
    for name, replicas in (("away", "[1, 2, 3]"), ("new", "[1, 2, 4]")):
        result = alone("lost_write", tmp_path / name, moved({1: 0, 2: 0}, replicas))
        assert result.status is not Status.VIOLATED
