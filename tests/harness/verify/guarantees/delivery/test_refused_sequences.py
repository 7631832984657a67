"""The sequence numbers of a correct producer are not rejected."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.harness.verify.example_runs import ONE, UNCLEAN, Tables, healthy, judged, named
from tests.harness.verify.guarantees.groups.test_group_guarantees import add_coordinator_terms
from urteil.harness.verify import synthetic
from urteil.harness.verify.synthetic import END_NS

AT = 200


def refused(error: str, **row: Any) -> Tables:
    """The record at AT was refused with that error, and is not there."""
    tables = healthy()
    (send,) = (table for table in tables["sends"] if table["offset"] == AT)
    for table in ("reads", "replicas"):
        for table_row in tables[table]:
            if table_row["value_id"] == send["value_id"]:
                table_row |= {"value_id": None, "sequence": None}
    send |= {"outcome": "fail", "error": error, "offset": None} | row
    return tables


def permissions_of_refusals(run_dir: Path, tables: Tables, **asked: Any) -> list[str | None]:
    """Of each refusal that was found, why it is permitted."""
    result = named(
        judged(run_dir, tables, scenario=synthetic.scenario(ONE, **asked)), "sequence_gap"
    )
    return [finding.permitted for finding in result.findings if finding.sub_kind == "refused"]


@pytest.mark.parametrize(
    ("error", "row", "expected"),
    [
        ("OutOfOrderSequenceNumberError", {}, [None]),
        ("OUT_OF_ORDER_SEQUENCE_NUMBER", {"outcome": "info"}, [None]),
        ("UnknownProducerIdError", {}, [None]),
        ("OutOfOrderSequenceNumberError", {"acks": 1}, []),
        ("OutOfOrderSequenceNumberError", {"idempotent": False}, []),
        ("RequestTimedOutError", {}, []),
    ],
)
def test_refused_sequence_is_found_unless_permitted(
    tmp_path: Path, error: str, row: dict[str, Any], expected: list[None]
) -> None:
    assert permissions_of_refusals(tmp_path, refused(error, **row)) == expected


def test_producer_with_an_earlier_failure_may_be_refused(tmp_path: Path) -> None:
    tables = refused("OutOfOrderSequenceNumberError")
    late = next(table for table in tables["sends"] if table["outcome"] == "fail")
    before = [table for table in tables["sends"] if table["client"] == late["client"]]
    before[before.index(late) - 1] |= {"outcome": "info", "complete_ns": None}
    assert permissions_of_refusals(tmp_path, tables) == []


def test_loss_by_an_unclean_election_is_permitted(tmp_path: Path) -> None:
    tables = refused("OutOfOrderSequenceNumberError")
    late = next(table for table in tables["sends"] if table["outcome"] == "fail")
    before = next(table for table in tables["sends"] if table["client"] == late["client"])
    assert permissions_of_refusals(tmp_path, tables, cluster=UNCLEAN) == [None]
    first = min(tables["states"], key=lambda row: row["zxid"])
    first["isr"] = json.dumps([first["leader"]])
    assert permissions_of_refusals(tmp_path, tables, cluster=UNCLEAN) == [None]
    tables["sends"].append(before | {"value_id": "r/p0/100200", "offset": 200})
    assert permissions_of_refusals(tmp_path, tables, cluster=UNCLEAN) == [
        "earlier records of the producer may be lost"
    ]


def test_deposed_leader_may_refuse_until_it_learns_of_the_election(tmp_path: Path) -> None:
    """Its log ends with its leadership. Observed of Apache Kafka 3.9.1: a producer with old
    metadata sent to a former leader a second after its leadership had ended, before the leader
    knew."""
    deposed = [row["node"] for row in healthy()["sends"] if row["offset"] == AT]
    others = sorted({1, 2, 3} - set(deposed))
    tables = refused("OutOfOrderSequenceNumberError", node=others[0])
    assert permissions_of_refusals(tmp_path, tables) == [
        "the broker that rejected it had been deposed, and may not have known that"
    ]


@pytest.mark.parametrize(("topic", "found"), [("__consumer_offsets", []), ("other", ["repeated"])])
def test_coordinators_write_offsets_of_transactions_with_sequence_zero(
    topic: str, found: list[str], tmp_path: Path
) -> None:
    tables = healthy()
    add_coordinator_terms(tables, END_NS)
    place = {"topic_id": "offsets", "topic": topic, "partition": 0}
    written = {"value_id": None, "intact": None, "producer_id": 2_005, "sequence": 0}
    for row in tables["states"]:
        if row["topic_id"] == "offsets":
            row |= place
    for broker in (1, 2, 3):
        ends = {"broker": broker, "log_end": 2, "high_watermark": 2}
        tables["logs"].append(tables["logs"][0] | place | ends)
        tables["replicas"] += [
            tables["replicas"][0]
            | (place | written)
            | {"broker": broker, "offset": n, "batch_base": n, "leader_epoch": 0}
            for n in range(2)
        ]
    result = named(judged(tmp_path, tables), "sequence_gap")
    assert [finding.sub_kind for finding in result.findings] == found
