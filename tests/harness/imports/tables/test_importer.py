"""Tables of another recorder, down to sends and reads, are judged without a cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.harness.verify.example_runs import ONE, Tables, healthy
from urteil.cli.exit_codes import EXIT_WRONG_USAGE
from urteil.cli.main import exit_code
from urteil.harness.evidence.schema import SCHEMAS
from urteil.harness.imports.tables.importer import load
from urteil.harness.imports.tables.missing_columns import NEEDED
from urteil.harness.imports.tables.text_tables import TablesError
from urteil.harness.verify.judgement import judge_run
from urteil.harness.verify.result import Result, Status, Verdict

LEAST = {name: (*columns, "topic") for name, columns in NEEDED.items()}
"""The fewest columns, as a first-time user brings them."""


def bring(folder: Path, tables: Tables, columns: dict[str, tuple[str, ...] | None]) -> None:
    """Write these tables, each with some columns or all, as NAME.parquet."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, kept in columns.items():
        rows = pa.Table.from_pylist(tables.get(name, []), schema=SCHEMAS[name])
        pq.write_table(rows.select(kept) if kept else rows, folder / f"{name}.parquet")


def judged(folder: Path, tables: Tables, columns: Any, **settings: Any) -> Result:
    bring(folder / "in", tables, columns)
    message = {"acks": -1, "idempotent": True, "isolation": "read_committed", "command": ""}
    load(folder / "in", folder / "run", **(message | settings))
    return judge_run(folder / "run", engine="duckdb", master=None, session=None, canary=False)


def violated(result: Result) -> dict[str, list[int | None]]:
    return {
        guarantee.name: [finding.offset for finding in guarantee.findings]
        for guarantee in result.guarantees
        if guarantee.status is Status.VIOLATED
    }


ALL = dict.fromkeys(name for name in SCHEMAS if name != "manifest")
SUBSETS: dict[str, dict[str, tuple[str, ...] | None]] = {
    "least": dict(LEAST),
    "sends and reads": dict.fromkeys(NEEDED),
    "clients": dict.fromkeys((*NEEDED, "clients")),
    "passes": dict.fromkeys((*NEEDED, "clients", "passes")),
    "polls without places": LEAST | {"reads": (*LEAST["reads"], "poll")},
    "places without polls": LEAST | {"reads": (*LEAST["reads"], "pass", "position_in_poll")},
}


@pytest.mark.parametrize("columns", SUBSETS.values(), ids=SUBSETS)
def test_history_with_few_tables_passes(columns: Any, tmp_path: Path) -> None:
    result = judged(tmp_path, healthy(), columns)
    assert (violated(result), result.reasons, result.verdict) == ({}, [], Verdict.PASS)
    holds = {guarantee.name for guarantee in result.guarantees if guarantee.status is Status.HOLDS}
    assert {"lost_write", "phantom", "duplicate", "inconsistent_offset", "stale_append"} <= holds


def test_places_in_polls_order_the_records_of_a_poll(tmp_path: Path) -> None:
    """Whatever the order of the rows; without them the rows do."""
    tables = healthy()
    bring(tmp_path / "in", tables, SUBSETS["polls without places"])
    load(
        tmp_path / "in", tmp_path / "run",
        acks=-1, idempotent=True, isolation="read_committed", command="",
    )  # fmt: skip
    reads = pq.read_table(tmp_path / "run" / "evidence" / "reads").to_pylist()
    for row, own in zip(reads, tables["reads"], strict=True):
        assert row["position_in_poll"] == own["position_in_poll"]
    tables["reads"].sort(key=lambda row: (row["read_ns"], -row["position_in_poll"]))
    columns = SUBSETS["places without polls"]
    assert judged(tmp_path / "turned", tables, columns).verdict is Verdict.PASS


@pytest.mark.parametrize("columns", SUBSETS.values(), ids=SUBSETS)
def test_lost_and_unsent_records_are_found(columns: Any, tmp_path: Path) -> None:
    tables = healthy()
    tables["reads"] = [row for row in tables["reads"] if row["offset"] != 50]
    tables["sends"] = [row for row in tables["sends"] if row["offset"] != 60]
    offsets = violated(judged(tmp_path, tables, columns))
    assert (offsets["lost_write"], offsets["phantom"]) == ([50], [60])


def test_all_tables_without_run_facts_are_judged(tmp_path: Path) -> None:
    tables = healthy()
    assert violated(judged(tmp_path / "well", tables, ALL)) == {}
    follower = tables["logs"][1]["broker"]
    tables["replicas"] = [
        row for row in tables["replicas"] if (row["broker"], row["offset"]) != (follower, 50)
    ]
    offsets = violated(judged(tmp_path / "hurt", tables, ALL))
    assert offsets == {"replica_divergence": [50], "hole": [50]}


def test_topic_names_get_the_ids_of_other_tables(tmp_path: Path) -> None:
    columns = ALL | {name: tuple(set(SCHEMAS[name].names) - {"topic_id"}) for name in NEEDED}
    assert violated(judged(tmp_path / "well", healthy(), columns)) == {}
    tables = healthy()
    tables["passes"][0]["topic_id"] = "another"
    with pytest.raises(TablesError, match="it has no topic_id, and topic urteil"):
        judged(tmp_path / "anew", tables, columns)


def test_compacted_topics_require_their_own_guarantee(tmp_path: Path) -> None:
    message = {"urteil": {"cleanup.policy": "compact"}}
    bring(tmp_path / "in", {}, {})
    (tmp_path / "in" / "topics.json").write_text(json.dumps(message))
    result = judged(tmp_path, healthy(), dict.fromkeys(NEEDED))
    assert (result.verdict, result.reasons) == (Verdict.PASS, [])


@pytest.mark.parametrize("asked", [None, "2"])
def test_min_isr_is_one_unless_the_topic_sets_it(asked: str | None, tmp_path: Path) -> None:
    """By Apache Kafka's default, which is not the lab's."""
    tables = healthy()
    for row in tables["states"]:
        row["isr"] = f"[{row['leader']}]" if row["version"] == 1 else row["isr"]
    bring(tmp_path / "in", {}, {})
    if asked:
        message = {"urteil": {"min.insync.replicas": asked}}
        (tmp_path / "in" / "topics.json").write_text(json.dumps(message))
    offsets = violated(judged(tmp_path, tables, ALL))
    assert ("ack_below_min_isr" in offsets) == (asked is not None)


def test_record_skipped_by_all_later_readers_is_a_reason(tmp_path: Path) -> None:
    tables = healthy()
    tables["reads"] = [
        row for row in tables["reads"] if (row["client"], row["offset"]) != ("final", 50)
    ]
    result = judged(tmp_path, tables, dict(LEAST))
    (reason,) = result.reasons
    assert reason.startswith("urteil-0: the record at offset 50 was read, and passed over by every")
    assert (violated(result), result.verdict) == ({}, Verdict.UNKNOWN)


@pytest.mark.parametrize("first", [0, 1])
def test_unread_record_between_passed_offsets_is_lost(first: int, tmp_path: Path) -> None:
    """The first records of the partition are read by nobody where `first` is 1."""
    tables = healthy()
    tables["reads"] = [row for row in tables["reads"] if row["offset"] >= first]
    tables["reads"] = [row for row in tables["reads"] if row["offset"] != 50]
    for row in tables["sends"]:
        row["offset"] = None if row["offset"] in (50, *range(first)) else row["offset"]
    result = judged(tmp_path, tables, dict(LEAST))
    assert violated(result)["lost_write"] == [None]
    unread = "urteil-0: no reader received 1 record acknowledged without an offset"
    assert any(reason.startswith(unread) for reason in result.reasons) == (first == 1)


@pytest.mark.parametrize("outcome", ["info", "fail"])
def test_send_without_acknowledgement_and_partition_leaves_no_doubt(
    outcome: str, tmp_path: Path
) -> None:
    tables = healthy()
    sent = tables["sends"][-1] | {"value_id": "p/unplaced", "op": 10**6, "outcome": outcome}
    sent |= {"partition": None, "partition_intended": None, "offset": None}
    tables["sends"].append(sent)
    result = judged(tmp_path, tables, dict(LEAST))
    assert (violated(result), result.reasons, result.verdict) == ({}, [], Verdict.PASS)


def test_skip_is_found_where_passes_are_given(tmp_path: Path) -> None:
    """Without `pass` a reader may have been moved; nobody is accused then."""
    tables = healthy()
    tables["reads"] = [
        row for row in tables["reads"] if (row["client"], row["offset"]) != ("c0", 50)
    ]
    least = judged(tmp_path / "least", tables, dict(LEAST))
    assert (violated(least), least.verdict) == ({}, Verdict.PASS)
    assert violated(judged(tmp_path / "all", tables, dict.fromkeys(NEEDED)))["poll_skip"] == [50]


def test_unread_record_is_neither_lost_nor_stored(tmp_path: Path) -> None:
    tables = healthy()
    tables["reads"] = [row for row in tables["reads"] if row["offset"] < 390]
    result = judged(tmp_path, tables, dict(LEAST))
    assert result.verdict is Verdict.UNKNOWN
    assert result.reasons[0].startswith(
        "urteil-0: 10 acknowledged records, the first at offset 390, lie where no reader passed"
    )


def test_settings_of_topics_and_clients_are_given_beside(tmp_path: Path) -> None:
    tables = healthy()
    copied = next(row for row in tables["reads"] if row["client"] == "final")
    tables["reads"].append(copied | {"offset": ONE.records, "poll": 10**6})
    (tmp_path / "in").mkdir()
    offsets = violated(judged(tmp_path, tables, dict(LEAST)))
    assert "duplicate" in offsets
    loose = judged(tmp_path / "loose", tables, dict(LEAST), idempotent=False)
    assert "duplicate" not in violated(loose)
    (tmp_path / "in" / "topics.json").write_text(json.dumps({"urteil": {"cleanup.policy": 1}}))
    load(tmp_path / "in", tmp_path / "other", acks=-1, idempotent=True,
         isolation="read_committed", command="")  # fmt: skip
    assert '"cleanup.policy": "1"' in (tmp_path / "other" / "run.json").read_text()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ("no sends", "has no sends (sends.parquet, sends.csv, sends.jsonl"),
        ("no column", "sends.parquet: sends has no invoke_ns, outcome"),
        ("other type", "sends.parquet, row 1: offset is 'x', should be int64"),
        ("cut", "sends.parquet: sends cannot be read"),
        ("topics", "topics.json: "),
        ("unknown topic", "topics.json: no table has a topic urtiel; did you mean urteil?"),
    ],
)
def test_invalid_tables_are_rejected_with_reason(
    damage: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = healthy()
    bring(tmp_path, tables, dict(LEAST))
    path = tmp_path / "sends.parquet"
    sends = pq.read_table(path)
    if damage == "no sends":
        path.unlink()
    elif damage == "no column":
        pq.write_table(sends.drop_columns(["outcome", "invoke_ns"]), path)
    elif damage == "other type":
        texts = pa.array(["x"] * len(sends))
        pq.write_table(sends.set_column(sends.column_names.index("offset"), "offset", texts), path)
    elif damage == "cut":
        path.write_bytes(path.read_bytes()[:-100])
    else:
        (tmp_path / "topics.json").write_text("[]" if damage == "topics" else '{"urtiel": {}}')
    with pytest.raises(TablesError, match=r".") as error:
        load(tmp_path, tmp_path / "run", acks=-1, idempotent=True, isolation="read_committed",
             command="")  # fmt: skip
    assert message in str(error.value)
    runs = tmp_path / "runs"
    assert exit_code(["import", str(tmp_path), "--out", str(runs)]) == EXIT_WRONG_USAGE
    assert message in capsys.readouterr().err.replace("\n", " ")
    assert not list(runs.glob("*"))


@pytest.mark.parametrize("columns", [dict.fromkeys(NEEDED), dict(LEAST)])
@pytest.mark.parametrize(("acks", "status"), [(1, Status.PERMITTED), (-1, Status.VIOLATED)])
def test_empty_settings_cells_take_the_given_settings(
    columns: Any, acks: int, status: Status, tmp_path: Path
) -> None:
    """As does a whole column that is not there."""
    tables = healthy()
    for row in tables["sends"]:
        row |= {"acks": None, "idempotent": None}
    tables["reads"] = [row for row in tables["reads"] if row["offset"] != 200]
    settings = {"acks": acks, "idempotent": acks == -1}
    result = judged(tmp_path, tables, columns, **settings)
    lost = next(guarantee for guarantee in result.guarantees if guarantee.name == "lost_write")
    assert lost.status is status
