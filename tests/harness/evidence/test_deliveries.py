"""Deliveries of a share group become rows, each with its acknowledgement."""

from __future__ import annotations

from typing import Any

import pytest

from urteil.harness.evidence.journal import (
    Acknowledge,
    Acknowledged,
    Acknowledgement,
    AcknowledgeResult,
    Begin,
    Delivered,
    DeliveredRecord,
    DeliveredSlice,
    Entry,
)
from urteil.harness.evidence.journal_rows import JournalRows

BEGIN = Begin(
    run="r", client="s1", session=1, kind="share_consumer", at_ns=5, wall_ns=5, boot_id="boot",
    pid=9, library="confluent-kafka", version="2", topic_ids={"orders": "id"},
)  # fmt: skip


def delivered(poll: int, *offsets: int) -> Delivered:
    records = [DeliveredRecord(n, "k", f"r/p1/{n}", True, 0, 1, poll) for n in offsets]
    return Delivered(poll, 10 * poll, 10 * poll + 1, "g", [DeliveredSlice("orders", 0, records)])


def acknowledge(*records: tuple[int, str]) -> Acknowledge:
    return Acknowledge(20, [Acknowledgement("orders", 0, *record) for record in records])


def rows(*entries: Entry) -> list[dict[str, Any]]:
    journal = JournalRows("r")
    found = [row for entry in (BEGIN, *entries) for row in journal.take(entry)]
    found += journal.remaining_rows(None)
    return [row for table, row in found if table == "deliveries"]


@pytest.mark.parametrize(("outcome", "error"), [("ok", None), ("fail", "INVALID_RECORD_STATE")])
def test_each_delivered_record_has_its_acknowledgement(outcome: str, error: str | None) -> None:
    first, second = rows(
        delivered(1, 3, 4),
        acknowledge((3, "accept"), (4, "release")),
        Acknowledged(30, [AcknowledgeResult("orders", 0, outcome, error)]),
    )
    assert (first["offset"], first["acknowledgement"]) == (3, "accept")
    assert (second["offset"], second["acknowledgement"]) == (4, "release")
    for row in (first, second):
        assert (row["group"], row["topic_id"], row["delivery_count"]) == ("g", "id", 1)
        assert (row["requested_ns"], row["read_ns"], row["invoke_ns"]) == (10, 11, 20)
        assert (row["complete_ns"], row["outcome"], row["error"]) == (30, outcome, error)


def test_acknowledgement_without_an_answer_is_unknown() -> None:
    (row,) = rows(delivered(1, 3), acknowledge((3, "accept")))
    assert (row["acknowledgement"], row["outcome"]) == ("accept", "info")
    assert row.get("complete_ns") is None


def test_record_that_is_never_acknowledged_has_no_outcome() -> None:
    first, second = rows(delivered(1, 3), delivered(2, 5))
    assert [first["offset"], second["offset"]] == [3, 5]
    assert not {"acknowledgement", "invoke_ns", "outcome"} & {*first, *second}


def test_answer_for_another_partition_leaves_the_outcome_unknown() -> None:
    (row,) = rows(
        delivered(1, 3),
        acknowledge((3, "accept")),
        Acknowledged(30, [AcknowledgeResult("orders", 1, "ok", None)]),
    )
    assert row["outcome"] == "info"
