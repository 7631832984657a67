"""A client that exceeds its quota is found; a burst, and traffic from before the quota, are not
counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.harness.verify import example_runs
from tests.harness.verify.example_runs import Tables
from tests.harness.verify.guarantees.availability.test_no_delivery import fault
from tests.harness.verify.guarantees.groups.test_group_guarantees import judge
from urteil.harness.scenario import Scenario
from urteil.harness.verify import synthetic
from urteil.harness.verify.derived.expected_progress import resumed_progress_rows
from urteil.harness.verify.derived.tables import Derived
from urteil.harness.verify.result import GuaranteeResult, Status
from urteil.harness.verify.synthetic import BEGIN_NS, END_NS, S

ONE = synthetic.Shape(records=400, partitions=1)
LARGE = 10_000
"""Bytes of a record; each producer sends about seven records per second."""
NAME = "quota_exceeded"


def _limited(
    client: str = "p0", at_s: float = -6, rate: float = 1_000, kind: str = "producer", **more: Any
) -> dict[str, Any]:
    at_ns = BEGIN_NS + int(at_s * S)
    fields = {f"{kind}_byte_rate": f"{rate}"}
    row = {"invoke_ns": at_ns, "complete_ns": at_ns, "outcome": "ok", "act": "quota"}
    return row | {"subject": client, "before": "{}", "after": json.dumps(fields)} | more


def _calm() -> Tables:
    """The healthy evidence without its crash and its election."""
    tables = example_runs.healthy(ONE)
    tables["faults"].clear()
    tables["states"] = [row for row in tables["states"] if row["at_ns"] <= BEGIN_NS]
    return tables


def _judged(run_dir: Path, tables: Tables, *ops: dict[str, Any], **load: Any) -> GuaranteeResult:
    tables["admin_ops"] = list(ops)
    scenario: Scenario = synthetic.scenario(ONE)
    workload = msgspec.structs.replace(scenario.workload, **{"value_bytes": LARGE, **load})
    scenario = msgspec.structs.replace(scenario, workload=workload)
    return judge(run_dir, tables, scenario, synthetic.facts(ONE), (NAME,))[NAME]


def test_unthrottled_producer_above_its_quota_is_found(tmp_path: Path) -> None:
    result = _judged(tmp_path, _calm(), _limited())
    assert result.status is Status.VIOLATED
    (finding,) = result.findings
    assert finding.sub_kind == "written"
    assert "p0 has written" in finding.sentence
    assert "though its quota is 1000 bytes a second" in finding.sentence


def test_reader_with_every_record_holds(tmp_path: Path) -> None:
    result = _judged(tmp_path, _calm(), _limited("c0", kind="consumer"))
    assert [finding.sub_kind for finding in result.findings] == ["read"]


def test_default_quota_holds_for_clients_without_their_own(tmp_path: Path) -> None:
    ops = _limited("<default>"), _limited("p1", rate=1e9)
    result = _judged(tmp_path, _calm(), *ops)
    assert ["p0 has written" in finding.sentence for finding in result.findings] == [True]


@pytest.mark.parametrize(
    ("ops", "load"),
    [
        ([_limited(rate=100_000)], {}),
        ([_limited(outcome="info")], {}),
        ([_limited(), _limited(at_s=0.5, rate=1e9)], {}),
        ([_limited(at_s=25.5)], {}),  # it has not reached every broker
        ([_limited(kind="consumer")], {}),  # a producer reads nothing
        ([_limited("p7")], {}),
        ([_limited()], {"options": {"compression_type": "gzip"}}),
    ],
    ids=["below", "unknown", "lifted", "late", "other kind", "nobody", "packed"],
)
def test_traffic_within_a_quota_holds(ops: Any, load: Any, tmp_path: Path) -> None:
    assert not _judged(tmp_path, _calm(), *ops, **load).violations


def test_record_fetched_before_may_be_delivered_later(tmp_path: Path) -> None:
    tables = _calm()
    for row in tables["reads"]:
        if row["client"] == "c0":
            row["read_ns"] += 20 * S
    op = _limited("c0", at_s=19, kind="consumer", rate=1)
    assert _judged(tmp_path / "before", tables, op, value_bytes=100_000).violations == 0
    op = _limited("c0", at_s=-6, kind="consumer", rate=1)
    assert _judged(tmp_path / "after", tables, op, value_bytes=100_000).violations == 1


def test_only_undisturbed_time_counts(tmp_path: Path) -> None:
    tables = _calm()
    tables["faults"].append(fault("crash", "b1", BEGIN_NS, END_NS))
    assert not _judged(tmp_path, tables, _limited()).violations


def test_removed_quota_may_still_throttle() -> None:
    tables = {"state_spans": [{"p": 0}]}
    derived = Derived(tables=tables, faults=[fault("quota", "p0", BEGIN_NS, END_NS)])
    assert resumed_progress_rows(derived, synthetic.scenario(ONE), []) == []
