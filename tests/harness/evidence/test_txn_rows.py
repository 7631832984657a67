"""Transactions in a journal become rows, whatever the end of the client."""

from __future__ import annotations

from urteil.harness.evidence import journal as j
from urteil.harness.evidence.journal_rows import JournalRows, Row

BEGIN = j.Begin(
    run="r", client="t1", session=1, kind="txn", at_ns=1, wall_ns=1, boot_id="", pid=1,
    library="confluent-kafka", version="2", topic_ids={"a": "id"}, group="g",
    transactional_id="g-t1",
)  # fmt: skip
ENTRIES = (
    BEGIN,
    j.TxnBegin(1, 10, 5, 6),
    j.Send(0, 11, "a", 0, "k", 1, False, 1, "r/t2/7"),
    j.Poll(1, 12, 13, "ok", None, None,
           [j.Slice("a", 0, 0, 0, 1, None, [j.Got(0, "k", "r/t2/7", True, 0, 1)])], 1),
    j.Commit(1, 14, None, "m", [j.CommitEntry("a", 0, 1, 1)], 1),
    j.TxnCommit(1, 15),
    j.TxnEnd(1, 20, "committed"),
    j.Committed(1, 21, "ok", None),
    j.TxnBegin(2, 30, 5, 6),
    j.TxnCommit(2, 31),
)  # fmt: skip


def rows() -> dict[str, list[Row]]:
    rows: dict[str, list[Row]] = {}
    made = JournalRows("r")
    for entry in ENTRIES:
        for table, row in made.take(entry):
            rows.setdefault(table, []).append(row)
    for table, row in made.remaining_rows(None):
        rows.setdefault(table, []).append(row)
    return rows


def test_transaction_row_names_its_records_and_offsets() -> None:
    tables = rows()
    first, second = tables["txns"]
    assert (first["txn"], first["outcome"], first["transactional_id"]) == (1, "committed", "g-t1")
    assert (first["begin_ns"], first["commit_invoke_ns"], first["end_ns"]) == (10, 15, 20)
    assert (first["init_invoke_ns"], first["init_ns"]) == (5, 6)
    (send,), (read,), (commit,) = (tables[name] for name in ("sends", "reads", "commits"))
    assert {send["txn"], read["txn"], commit["txn"]} == {1}
    assert send["source"] == "r/t2/7"
    assert (second["outcome"], second["commit_invoke_ns"]) == ("unknown", 31)
    assert "end_ns" not in second
    assert tables["clients"][0]["transactional_id"] == "g-t1"


def test_deleted_offsets_are_an_act() -> None:
    made, table_rows = JournalRows("r"), []
    place = [j.CommitEntry("a", partition, 7, 7) for partition in (0, 1)]
    entries = (
        BEGIN,
        j.Commit(7, 10, None, None, place, None, "gone", True),
        j.Committed(7, 12, "ok", None),
        j.Commit(8, 13, None, None, place[:1], None, "gone", True),
        j.CommitRead(14, 15, "ok", None, None, None, "a", 0, None, None, "gone"),
    )
    for entry in entries:
        table_rows += made.take(entry)
    table_rows += made.remaining_rows(None)
    acts = [row for table, row in table_rows if table == "admin_ops"]
    assert [(act["invoke_ns"], act["complete_ns"], act["outcome"]) for act in acts] == [
        (10, 12, "ok"),
        (10, 12, "ok"),
        (13, None, "info"),
    ]
    assert {(act["act"], act["subject"]) for act in acts} == {("delete position", "gone")}
    assert '"partition": 1' in acts[1]["after"]
    (read,) = (row for table, row in table_rows if table == "commit_reads")
    assert read["group"] == "gone"
    assert "commits" not in {table for table, _ in table_rows}
