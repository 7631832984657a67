"""Circles of transactions are found, by reads alone or by what permits them."""

from __future__ import annotations

from pathlib import Path

from tests.harness.verify.test_transaction_guarantees import Tables, judged, made, of
from urteil.harness.verify.derived.cycles import _knots
from urteil.harness.verify.result import Status
from urteil.harness.verify.synthetic import BATCH


def _reads(tables: Tables, txn: int, offset: int) -> None:
    whose = next(row for row in tables["txns"] if row["txn"] == txn)
    read = next(row for row in tables["reads"] if row["offset"] == offset)
    tables["reads"].append(
        read | {"client": whose["client"], "pass": 900 + txn, "poll": 900 + txn, "txn": txn}
    )


def test_reads_one_way_make_no_circle_and_both_ways_do(tmp_path: Path) -> None:
    tables = made()
    _reads(tables, 7, 6 * BATCH)
    result = judged(tmp_path / "one", tables, "g1c", "g0")
    assert result["g1c"].status is Status.HOLDS
    assert result["g0"].status is Status.HOLDS
    _reads(tables, 6, 7 * BATCH)
    (finding, *_) = judged(tmp_path / "both", tables, "g1c")["g1c"].findings
    assert (finding.sub_kind, finding.permitted) == ("g1c", None)


def test_readers_of_uncommitted_records_may_go_in_a_circle(tmp_path: Path) -> None:
    tables = made()
    _reads(tables, 7, 6 * BATCH)
    _reads(tables, 6, 7 * BATCH)
    for row in tables["clients"]:
        row["isolation"] = "read_uncommitted"
    (finding, *_) = judged(tmp_path, tables, "g1c")["g1c"].findings
    assert finding.sub_kind == "g1c uncommitted"
    assert finding.permitted == "readers of uncommitted records are promised no more"


def test_what_was_aborted_is_in_no_circle(tmp_path: Path) -> None:
    tables = made()
    aborted = of(tables, "aborted")["txn"]
    _reads(tables, aborted, (aborted - 1) * BATCH)
    _reads(tables, aborted - 1, aborted * BATCH)
    assert judged(tmp_path, tables, "g1c")["g1c"].violations == 0


def test_knots_are_strongly_connected_components() -> None:
    nodes = {name: (name, 0, 0) for name in "abcdef"}
    edges = {"a": "b", "b": "c", "c": "ad", "d": "e", "e": "d", "f": "a"}
    after = {nodes[one]: [nodes[other] for other in others] for one, others in edges.items()}
    found = _knots(after)
    assert found[nodes["a"]] == found[nodes["b"]] == found[nodes["c"]]
    assert found[nodes["d"]] == found[nodes["e"]] != found[nodes["a"]]
    assert found[nodes["f"]] not in (found[nodes["a"]], found[nodes["d"]])
