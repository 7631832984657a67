"""A deposed leader acknowledges nothing: by ZooKeeper's state, and by its own answers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.harness.verify.example_runs import ONE, Tables, alone, healthy
from urteil.harness.verify import synthetic
from urteil.harness.verify.result import GuaranteeResult, Status
from urteil.harness.verify.synthetic import BEGIN_NS, END_NS, LED_NS, S

LEADS, DEPOSED = 2, 1
"""After the crash of the first broker, a second before LED_NS."""


def _healed_early() -> Tables:
    tables = healthy()
    (fault,) = tables["faults"]
    fault |= {"end_ns": LED_NS, "healed_ns": LED_NS}
    return tables


def _judged(run_dir: Path, tables: Tables) -> GuaranteeResult:
    return alone("two_leaders", run_dir, tables, scenario=synthetic.scenario(ONE))


def _acknowledged(tables: Tables, at_ns: int) -> str:
    """One more record, with acks=1, acknowledged by the former leader; no log contains it."""
    last = tables["sends"][-1]
    value_id = f"{last['value_id']}-deposed"
    tables["sends"].append(
        last
        | {"value_id": value_id, "op": last["op"] + 1, "acks": 1, "offset": None, "node": DEPOSED}
        | {"invoke_ns": at_ns, "complete_ns": at_ns + S // 100}
    )
    return value_id


def test_acknowledgement_of_a_long_deposed_leader_is_found(tmp_path: Path) -> None:
    tables = _healed_early()
    value_id = _acknowledged(tables, LED_NS + 6 * S)
    result = _judged(tmp_path, tables)
    (finding,) = result.findings
    assert (finding.sub_kind, finding.records[0]["value_id"]) == ("deposed", value_id)
    assert "for five seconds and more, with no fault at work" in finding.sentence
    assert result.status is Status.VIOLATED


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda send: send.update(attempts=2), id="a later leader's duplicate"),
        pytest.param(lambda send: send.update(outcome="info"), id="nobody acknowledged it"),
        pytest.param(lambda send: send.update(node=LEADS), id="who leads did"),
        pytest.param(lambda send: send.update(node=None), id="nobody knows who did"),
        pytest.param(
            lambda send: send.update(invoke_ns=LED_NS + 3 * S, complete_ns=LED_NS + 6 * S),
            id="it was sent before it could know",
        ),
    ],
)
def test_ambiguous_acknowledgement_yields_no_finding(
    tmp_path: Path, spoil: Callable[[dict[str, object]], None]
) -> None:
    tables = _healed_early()
    _acknowledged(tables, LED_NS + 6 * S)
    spoil(tables["sends"][-1])
    assert _judged(tmp_path, tables).violations == 0


def test_fault_may_delay_the_metadata(tmp_path: Path) -> None:
    tables = healthy()
    (fault,) = tables["faults"]
    fault |= {"begin_ns": BEGIN_NS, "end_ns": END_NS - 9 * S, "healed_ns": END_NS - 9 * S}
    _acknowledged(tables, END_NS - 5 * S)
    assert _judged(tmp_path, tables).violations == 0


@pytest.mark.parametrize(("later_ns", "expected"), [(S // 4, False), (S, True)])
def test_leader_that_reported_its_successor_before_is_found(
    later_ns: int, expected: bool, tmp_path: Path
) -> None:
    """Even while a fault acts: it knew its successor."""
    tables = healthy()
    value_id = _acknowledged(tables, LED_NS + 2 * S + later_ns)
    epoch = max(row["leader_epoch"] for row in tables["states"])
    where = '{"topic": "urteil", "partition": "0"}'
    for metric, value in (("metadata_leader", LEADS), ("metadata_leader_epoch", epoch)):
        tables["samples"].append(
            {"run": synthetic.RUN, "at_ns": LED_NS + 2 * S, "source": f"b{DEPOSED}"}
            | {"metric": metric, "labels": where, "value": float(value)}
        )
    values = [
        (finding.sub_kind, finding.records[0]["value_id"])
        for finding in _judged(tmp_path, tables).findings
    ]
    assert values == ([("knew better", value_id)] if expected else [])


def test_follower_with_a_record_in_another_epoch_deposes_no_leader(tmp_path: Path) -> None:
    """That replica is wrong: the leaders of both epochs acknowledged nothing there."""
    tables = _healed_early()
    before = [row["offset"] for row in tables["replicas"] if row["leader_epoch"] == 0]
    copies = [row for row in tables["replicas"] if row["offset"] == before[50]]
    copies[-1]["leader_epoch"] = 1
    assert _judged(tmp_path / "one", tables).status is Status.HOLDS
    (finding,) = alone("replica_divergence", tmp_path / "two", tables).findings
    assert (finding.sub_kind, finding.offset) == ("leader epoch", before[50])
    for row in copies:
        row["leader_epoch"] = 1
    findings = _judged(tmp_path / "three", tables).findings
    assert {finding.sub_kind for finding in findings} == {"not the leader", "two acknowledged"}
