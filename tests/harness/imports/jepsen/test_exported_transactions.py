"""Exported transactions have their sends and polls as steps, each once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.harness.verify.guarantees.transactions.list_histories import name_of, random_history
from urteil.harness.imports.jepsen.edn import Keyword, read_all
from urteil.harness.imports.jepsen.export import SPREAD, export

SEND, POLL = Keyword("send"), Keyword("poll")
TYPES = {"committed": "ok", "aborted": "fail", "unknown": "info"}


def test_polls_of_committed_transactions_are_steps_of_their_operations(tmp_path: Path) -> None:
    history = random_history(7, size=12)
    history.write(tmp_path)
    export(tmp_path, tmp_path / "history.edn")
    done = [op for op in read_all((tmp_path / "history.edn").read_text()) if op["type"] != "invoke"]
    types = {name_of(txn): TYPES[txn["outcome"]] for txn in history.txns}
    sent = Counter(types[name] for records in history.lists.values() for _, name in records)
    steps = [(op, step) for op in done if op["f"] in ("txn", "poll") for step in op["value"]]
    assert Counter(op["type"] for op, step in steps if step[0] == SEND) == sent
    polled = Counter(
        (op["f"], op["type"]) for op, step in steps if step[0] == POLL for _ in step[1].values()
    )
    read = Counter("txn" if types[name] == "ok" else "poll" for name, _, _ in history.reads)
    assert read["txn"]
    assert read["poll"]
    assert polled == {(f, "ok"): number for f, number in read.items()}
    values = [pair[1] for _, step in steps if step[0] == POLL for pairs in step[1].values()
              for pair in pairs]  # fmt: skip
    assert all(value >= SPREAD for value in values)


def test_reader_assigns_before_its_first_poll(tmp_path: Path) -> None:
    history = random_history(7, size=12)
    history.write(tmp_path)
    export(tmp_path, tmp_path / "history.edn")
    assigned: set[int] = set()
    for op in read_all((tmp_path / "history.edn").read_text()):
        if op["f"] == "assign":
            assigned.update(op["value"])
        elif op["type"] != "invoke":
            assert {key for step in op["value"] if step[0] == POLL for key in step[1]} <= assigned
