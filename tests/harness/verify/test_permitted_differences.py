"""Losses that the settings permit are counted as permitted, and no others."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.harness.verify import example_runs
from tests.harness.verify.example_runs import (
    ONE,
    UNCLEAN,
    alone,
    copy_of,
    healthy,
    judged,
    named,
)
from urteil.harness.scenario import Scenario, WorkloadSpec
from urteil.harness.verify import synthetic
from urteil.harness.verify.damage import records
from urteil.harness.verify.result import Status, Verdict
from urteil.harness.verify.synthetic import END_NS, LED_NS, Shape

ACKS_ONE = Shape(records=400, partitions=1, acks=1, idempotent=False)
HALF = 200
LATE = 380
"""Sent and read long after the second epoch began."""


def _lose(tables: example_runs.Tables, offsets: set[int]) -> None:
    for name in ("reads", "replicas"):
        tables[name] = [row for row in tables[name] if row["offset"] not in offsets]


def _sent_before_the_election(tables: example_runs.Tables, offset: int) -> None:
    """A send from before epoch 1 whose offset is where epoch 1 starts: it was truncated there."""
    value = {"value_id": f"r/p0/{100_000 + offset}", "op": 100_000 + offset, "client": "p0"}
    at_ns = LED_NS - 1_500_000_000
    row = tables["sends"][offset] | value | {"invoke_ns": at_ns, "complete_ns": at_ns + 1}
    tables["sends"].append(row)


def test_acks_one_permits_a_lost_tail_and_used_offsets(tmp_path: Path) -> None:
    tables = healthy(ACKS_ONE)
    for offset in (HALF, HALF + 1):
        _sent_before_the_election(tables, offset)
    scenario = synthetic.scenario(ACKS_ONE, must_find=("lost_write", "duplicate"))
    result = judged(tmp_path, tables, shape=ACKS_ONE, scenario=scenario)
    lost = named(result, "lost_write")
    assert (lost.status, lost.permitted, lost.violations) == (Status.PERMITTED, 2, 0)
    assert {finding.sub_kind for finding in lost.findings} == {"tail"}
    assert named(result, "inconsistent_offset").status is Status.HOLDS
    assert result.verdict is Verdict.PASS
    assert result.must_find == {"lost_write": True, "duplicate": False}


def test_send_acknowledged_without_offset_may_be_lost_in_an_election(tmp_path: Path) -> None:
    """A duplicate's acknowledgement may have none: then the starts after its send decide."""
    tables = healthy()
    _elect_unclean(tables)
    _sent_before_the_election(tables, HALF + 3)
    late = {"value_id": "r/p0/900", "op": 900, "invoke_ns": END_NS - 2, "complete_ns": END_NS - 1}
    tables["sends"].append(tables["sends"][HALF + 3] | late | {"client": "p0"})
    for row in tables["sends"][-2:]:
        row["offset"] = None
    config = {"unclean_leader_election_enable": "true", "min_insync_replicas": "1"}
    facts = synthetic.facts(ONE, topics=example_runs.topic(**config))
    result = judged(tmp_path, tables, facts=facts)
    for name in ("lost_write", "causal_loss"):
        permitted = {f.records[0]["value_id"]: f.permitted for f in named(result, name).findings}
        assert permitted[f"r/p0/{100_000 + HALF + 3}"], name
    assert named(result, "lost_write").violations == 1


@pytest.mark.parametrize("tombstone", [False, True])
def test_losable_last_value_excuses_an_older_one(tombstone: bool, tmp_path: Path) -> None:
    """The older value is below the start of the epoch that lost the last one."""
    tables = healthy(ACKS_ONE)
    for name in ("sends", "reads", "replicas"):
        for row in tables[name]:
            row["key"] = "twice" if row["offset"] == HALF - 20 else f"k{row['offset']}"
    _sent_before_the_election(tables, HALF)
    tables["sends"][-1] |= {"key": "twice", "tombstone": tombstone}
    facts = synthetic.facts(ACKS_ONE, topics=example_runs.topic(cleanup_policy="compact"))
    name = "resurrected_key" if tombstone else "stale_value_visible"
    result = alone(name, tmp_path, tables, shape=ACKS_ONE, facts=facts)
    assert (result.violations, result.permitted) == (0, 1)


def test_first_copy_of_a_repeated_last_value_may_be_cleaned(tmp_path: Path) -> None:
    """A retry without idempotence: one leader has both still, another served the second alone."""
    tables = healthy(ACKS_ONE)
    first, second = HALF - 20, HALF - 10
    tables["sends"] = [row for row in tables["sends"] if row["offset"] != first]
    value = next(row["value_id"] for row in tables["sends"] if row["offset"] == second)
    for name in ("sends", "reads", "replicas"):
        for row in tables[name]:
            row["key"] = f"k{second if row['offset'] == first else row['offset']}"
            row["value_id"] = value if row["offset"] == first else row["value_id"]
    tables["reads"] = [row for row in tables["reads"] if row["offset"] != first]
    facts = synthetic.facts(ACKS_ONE, topics=example_runs.topic(cleanup_policy="compact"))
    result = alone("latest_value_lost", tmp_path, tables, shape=ACKS_ONE, facts=facts)
    assert (result.violations, result.permitted) == (0, 0)


def test_acks_one_does_not_permit_the_loss_of_replicated_records(tmp_path: Path) -> None:
    tables = healthy(ACKS_ONE)
    _lose(tables, {50})
    lost = alone("lost_write", tmp_path, tables, shape=ACKS_ONE)
    assert (lost.violations, lost.permitted) == (1, 0)


def test_acks_one_does_not_permit_unserved_records(tmp_path: Path) -> None:
    tables = healthy(ACKS_ONE)
    tables["reads"] = [row for row in tables["reads"] if row["offset"] != 250]
    lost = alone("lost_write", tmp_path, tables, shape=ACKS_ONE)
    assert (lost.violations, lost.findings[0].sub_kind) == (1, "not served")


def test_acks_zero_promises_nothing(tmp_path: Path) -> None:
    shape = Shape(records=400, partitions=1, acks=0, idempotent=False)
    tables = healthy(shape)
    for row in tables["sends"]:
        row["offset"] = None
    _lose(tables, {50})
    for name in ("reads", "replicas", "commits", "commit_reads"):
        for row in tables[name]:
            if row["offset"] is not None:
                row["offset"] -= row["offset"] > 50
    ends = ("log_end", "high_watermark", "recovery_point", "to_offset")
    for row in [*tables["logs"], *tables["passes"]]:
        row |= {name: 399 for name in ends if name in row}
    for row in tables["logs"]:
        row["epochs"] = json.dumps({"0": 0, "1": 199, "2": 399, "3": 399})
    result = judged(tmp_path, tables, shape=shape)
    assert named(result, "lost_write").permitted == 1
    assert result.verdict is Verdict.PASS, result.reasons


def test_without_idempotence_duplicates_and_other_orders_are_permitted(tmp_path: Path) -> None:
    shape = Shape(records=400, partitions=1, idempotent=False)
    copy = copy_of(healthy(shape))
    records.append_again(copy)
    records.swap_records(copy)
    result = judged(tmp_path, copy.tables, shape=shape)
    assert named(result, "duplicate").status is Status.PERMITTED
    assert named(result, "reordered_send").status is Status.PERMITTED


def test_one_in_flight_keeps_the_order_without_idempotence(tmp_path: Path) -> None:
    shape = Shape(records=400, partitions=1, idempotent=False)
    copy = copy_of(healthy(shape))
    records.swap_records(copy)
    load = WorkloadSpec(idempotent=False, in_flight=1)
    scenario = synthetic.scenario(shape, workload=load)
    result = judged(tmp_path, copy.tables, shape=shape, scenario=scenario)
    assert named(result, "reordered_send").status is Status.VIOLATED


def _elect_unclean(tables: example_runs.Tables) -> None:
    """Epoch 1 is led by a broker that had left the ISR, and begins at HALF."""
    states = sorted(tables["states"], key=lambda row: row["zxid"])
    states[0]["isr"] = json.dumps([states[0]["leader"]])


def test_unclean_election_permits_the_loss_of_a_suffix(tmp_path: Path) -> None:
    tables = healthy()
    _elect_unclean(tables)
    _sent_before_the_election(tables, HALF + 3)
    config = {"unclean_leader_election_enable": "true", "min_insync_replicas": "1"}
    facts = synthetic.facts(ONE, topics=example_runs.topic(**config))
    result = judged(tmp_path, tables, facts=facts)
    assert named(result, "unclean_leader").status is Status.PERMITTED
    assert named(result, "lost_write").status is Status.PERMITTED
    assert named(result, "inconsistent_offset").status is Status.PERMITTED
    assert named(result, "loss_not_a_suffix").status is Status.HOLDS
    assert result.verdict is Verdict.PASS


def test_unclean_election_permits_no_more_than_a_suffix(tmp_path: Path) -> None:
    tables = healthy()
    _elect_unclean(tables)
    _lose(tables, {HALF - 5})
    result = judged(tmp_path, tables, scenario=_permitting_scenario())
    assert named(result, "lost_write").status is Status.VIOLATED
    assert named(result, "loss_not_a_suffix").status is Status.VIOLATED


def _permitting_scenario() -> Scenario:
    return synthetic.scenario(ONE, cluster=UNCLEAN)


def test_forbidden_unclean_election_is_a_violation(tmp_path: Path) -> None:
    tables = healthy()
    _elect_unclean(tables)
    _sent_before_the_election(tables, HALF + 3)
    result = judged(tmp_path, tables)
    assert named(result, "unclean_leader").status is Status.VIOLATED
    assert named(result, "lost_write").status is Status.VIOLATED
    assert result.verdict is Verdict.FAIL


def test_requested_election_is_permitted(tmp_path: Path) -> None:
    tables = healthy()
    _elect_unclean(tables)
    tables["admin_ops"] = [{"act": "elect unclean", "subject": "urteil-0", "outcome": "ok"}]
    result = alone("unclean_leader", tmp_path, tables)
    assert (result.status, result.findings[0].permitted) == (
        Status.PERMITTED,
        "an administrator requested it",
    )


@pytest.mark.parametrize("happened", [False, True])
def test_unclean_election_that_did_not_happen_excuses_nothing(
    happened: bool, tmp_path: Path
) -> None:
    tables = healthy()
    if happened:
        _elect_unclean(tables)
    tables["logs"][0]["recovery_point"] = 500
    result = alone("replica_divergence", tmp_path, tables, scenario=_permitting_scenario())
    assert [finding.sub_kind for finding in result.findings] == ["beyond its end"] * (not happened)


def test_unclean_election_does_not_excuse_an_unknown_epoch(tmp_path: Path) -> None:
    tables = healthy()
    _elect_unclean(tables)
    next(row for row in tables["reads"] if row["offset"] == HALF + 3)["leader_epoch"] = 500
    (finding,) = alone("epoch_lineage", tmp_path, tables, scenario=_permitting_scenario()).findings
    assert (finding.sub_kind, finding.offset, finding.permitted) == ("read", HALF + 3, None)


def _serve_another_record(tables: example_runs.Tables) -> None:
    read, other = (_live_read(tables, offset) for offset in (LATE, LATE - 100))
    read |= {name: other[name] for name in ("value_id", "key", "timestamp_ms")}


def _skip_a_record(tables: example_runs.Tables) -> None:
    tables["reads"].remove(_live_read(tables, LATE))


def _live_read(tables: example_runs.Tables, offset: int) -> dict[str, Any]:
    return next(r for r in tables["reads"] if (r["client"], r["offset"]) == ("c0", offset))


def _move_an_acknowledgement(tables: example_runs.Tables) -> None:
    next(row for row in tables["sends"] if row["offset"] == LATE)["offset"] += 100


def _answer_an_older_end(tables: example_runs.Tables) -> None:
    (*_, last) = (row for row in tables["offset_answers"] if row["query"] == "latest")
    last["offset"] = LATE


def _answer_a_later_offset(tables: example_runs.Tables) -> None:
    (*_, last) = (row for row in tables["offset_answers"] if row["query"] == "time")
    last["offset"] = LATE


@pytest.mark.parametrize(
    ("damage", "names"),
    [
        (_serve_another_record, ["inconsistent_offset"]),
        (_skip_a_record, ["poll_skip"]),
        (_move_an_acknowledgement, ["misplaced_ack"]),
        (_answer_an_older_end, ["latest_went_back", "end_below_ack"]),
        (_answer_a_later_offset, ["time_index_wrong"]),
    ],
)
def test_unclean_election_excuses_no_later_anomaly(
    damage: Callable[[example_runs.Tables], None], names: list[str], tmp_path: Path
) -> None:
    tables = healthy()
    _elect_unclean(tables)
    damage(tables)
    result = judged(tmp_path, tables, scenario=_permitting_scenario())
    assert [named(result, name).status for name in names] == [Status.VIOLATED] * len(names)


def test_deposed_leader_may_serve_its_records_during_a_partition(tmp_path: Path) -> None:
    tables = healthy()
    _elect_unclean(tables)
    tables["faults"][0] |= {"fault": "partition", "targets": '["b1->b2"]'}
    _serve_another_record(tables)
    result = judged(tmp_path, tables, scenario=_permitting_scenario())
    assert named(result, "inconsistent_offset").status is Status.PERMITTED


@pytest.mark.parametrize(
    ("broker", "status"), [(1, Status.PERMITTED), (None, Status.PERMITTED), (2, Status.VIOLATED)]
)
def test_former_leader_may_acknowledge_until_it_learns_of_the_election(
    broker: int | None, status: Status, tmp_path: Path
) -> None:
    tables = healthy()
    _elect_unclean(tables)
    tables["faults"][0] |= {"fault": "isolate", "targets": '["b1->b2", "b1->zk1"]'}
    _sent_before_the_election(tables, HALF + 90)
    at_ns = LED_NS + 4_000_000_000
    tables["sends"][-1] |= {"node": broker, "invoke_ns": at_ns, "complete_ns": at_ns + 1}
    result = judged(tmp_path, tables, scenario=_permitting_scenario())
    assert named(result, "lost_write").status is status
    suffix = Status.VIOLATED if status is Status.VIOLATED else Status.HOLDS
    assert named(result, "loss_not_a_suffix").status is suffix
