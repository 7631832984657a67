"""Unreadable evidence makes a verdict UNKNOWN with a reason; a folder without a run is an error."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.harness.verify.example_runs import ONE, healthy, judged, named
from urteil.cli.exit_codes import EXIT_WRONG_USAGE
from urteil.cli.main import exit_code
from urteil.harness.verify import judgement, synthetic
from urteil.harness.verify.result import Result, Status, Verdict, load_result
from urteil.harness.verify.synthetic import END_NS, S

READS = Path("evidence/reads/part-0.parquet")


@pytest.mark.parametrize(
    ("table", "column"),
    [("sends", "partition"), ("reads", "read_ns"), ("polls", "poll"), ("passes", "from_offset")],
)
@pytest.mark.parametrize("finer", [False, True])
@pytest.mark.usefixtures("few")
def test_lists_and_times_in_number_columns_are_a_reason(
    table: str, column: str, finer: bool, run_dir: Path
) -> None:
    part = run_dir / "evidence" / table / "part-0.parquet"
    rows = pq.read_table(part)
    at, have = rows.schema.get_field_index(column), rows.column(column)
    kind = pa.timestamp("ns") if finer else pa.list_(pa.int64())
    converted = (
        have.cast(pa.int64()) if finer else pa.array([[value] for value in have.to_pylist()])
    )
    pq.write_table(rows.set_column(at, column, converted.cast(kind)), part)
    result = judge(run_dir)
    assert result.verdict is Verdict.UNKNOWN
    assert result.reasons[0].startswith(f"evidence/{table}/part-0.parquet: {column} is ")
    assert not any("cannot be judged" in reason for reason in result.reasons)


@pytest.mark.usefixtures("few")
def test_clients_without_names_are_a_reason(run_dir: Path) -> None:
    part = run_dir / "evidence" / "clients" / "part-0.parquet"
    rows = pq.read_table(part).to_pylist()
    rows[-1]["client"] = None
    pq.write_table(pa.Table.from_pylist(rows, schema=pq.read_schema(part)), part)
    result = judge(run_dir)
    assert result.verdict is Verdict.UNKNOWN
    assert "rows without client" in result.reasons[0]
    assert not any("cannot be judged" in reason for reason in result.reasons)


WIDER = {pa.int32(): pa.int64()}


def judge(run_dir: Path) -> Result:
    """By DuckDB, without the canary, which has tests of its own."""
    return judgement.judge_run(run_dir, engine="duckdb", master=None, session=None, canary=False)


@pytest.fixture(scope="module")
def judged_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    synthetic.write_run(folder, healthy(), synthetic.scenario(ONE), synthetic.facts(ONE))
    return folder


@pytest.fixture
def run_dir(judged_run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(judged_run, tmp_path / "run"))


def _cut(part: Path) -> None:
    part.write_bytes(part.read_bytes()[:500])


def _empty(part: Path) -> None:
    part.write_bytes(b"")


def _without_offset(part: Path) -> None:
    pq.write_table(pq.read_table(part).drop_columns(["offset"]), part)


def _text_offset(part: Path) -> None:
    table = pq.read_table(part)
    at = table.schema.get_field_index("offset")
    text = pa.array([str(offset) for offset in table.column("offset").to_pylist()])
    pq.write_table(table.set_column(at, "offset", text), part)


def _other_bytes(part: Path) -> None:
    data = bytearray(part.read_bytes())
    data[200:2000] = bytes(byte ^ 0x5A for byte in data[200:2000])
    part.write_bytes(data)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (_cut, f"{READS} is not a complete Parquet file"),
        (_empty, f"{READS} is not a complete Parquet file"),
        (_without_offset, f"{READS}: it has no offset"),
        (_other_bytes, f"{READS} is not a complete Parquet file"),
        (_text_offset, f"{READS}: offset is string, should be int64"),
    ],
)
def test_evidence_that_cannot_be_read_is_unknown(
    run_dir: Path, damage: Callable[[Path], None], reason: str
) -> None:
    damage(run_dir / READS)
    result = judge(run_dir)
    assert result.verdict is Verdict.UNKNOWN
    assert result.reasons[0].startswith(reason)
    assert [
        guarantee.name for guarantee in result.guarantees if guarantee.status is Status.VIOLATED
    ] == []
    assert named(result, "epoch_went_back").status is Status.HOLDS
    assert not list((run_dir / "work").iterdir())
    assert load_result(run_dir).verdict is Verdict.UNKNOWN


@pytest.mark.parametrize("table", ["states", "passes"])
def test_small_tables_with_damaged_pages_are_a_reason(table: str, run_dir: Path) -> None:
    part = next((run_dir / "evidence" / table).iterdir())
    data = bytearray(part.read_bytes())
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    data[4:footer] = bytes(byte ^ 0x5A for byte in data[4:footer])
    part.write_bytes(data)
    result = judge(run_dir)
    assert result.verdict is Verdict.UNKNOWN
    expected = f"evidence/{table}/{part.name} is not a complete Parquet file"
    assert any(reason.startswith(expected) for reason in result.reasons)
    assert named(result, "duplicate").status is Status.HOLDS


@pytest.mark.parametrize("name", ["scenario.json", "run.json"])
def test_folder_without_a_run_is_a_usage_error(
    run_dir: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (run_dir / name).write_text('{"run": ')
    assert exit_code(["verify", str(run_dir), "--engine", "duckdb"]) == EXIT_WRONG_USAGE
    said = capsys.readouterr().err
    assert f"run/{name} cannot be read" in said
    assert "play the run again" in said


def test_more_partitions_than_any_topic_has_are_wrong_usage(
    run_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (run_dir / "run.json").read_text()
    (run_dir / "run.json").write_text(
        text.replace('"partitions": 1', '"partitions": 1000000000000')
    )
    assert exit_code(["verify", str(run_dir), "--engine", "duckdb"]) == EXIT_WRONG_USAGE
    assert "Expected `int` <= 1000000 - at `$.topics[0].partitions`" in capsys.readouterr().err


@pytest.mark.usefixtures("few")
def test_a_file_in_place_of_the_evidence_is_unknown(run_dir: Path) -> None:
    shutil.rmtree(run_dir / "evidence")
    (run_dir / "evidence").touch()
    result = judge(run_dir)
    assert result.verdict is Verdict.UNKNOWN
    assert result.reasons[0] == "evidence is not a folder of tables: collect the evidence again"


NO_NUMBER = [
    ("replicas", "offset", 2**63 - 1),
    ("replicas", "leader_epoch", 2**31 - 1),
    ("reads", "read_ns", -(2**63)),
    ("passes", "pass", 2**63 - 1),
    ("states", "at_ns", 2**63 - 1),
    ("sends", "producer_epoch", -(2**31)),
]


@pytest.mark.parametrize(
    "statistics", [True, pytest.param(False, marks=pytest.mark.thorough)], ids=["footers", "read"]
)
@pytest.mark.parametrize(("table", "column", "number"), NO_NUMBER)
@pytest.mark.usefixtures("few")
def test_impossible_numbers_yield_no_finding(
    table: str, column: str, number: int, statistics: bool, run_dir: Path
) -> None:
    part = run_dir / "evidence" / table / "part-0.parquet"
    rows = pq.read_table(part)
    at = rows.schema.get_field_index(column)
    numbers = pa.array([number] * rows.num_rows, type=rows.schema.field(column).type)
    pq.write_table(rows.set_column(at, column, numbers), part, write_statistics=statistics)
    result = judge(run_dir)
    assert result.verdict is Verdict.UNKNOWN, result.reasons
    expected = f"{part.relative_to(run_dir)}: {column} with impossible numbers"
    assert result.reasons[0].startswith(expected)
    assert [
        guarantee.name for guarantee in result.guarantees if guarantee.status is Status.VIOLATED
    ] == []


def test_run_without_its_scenario_is_an_error(
    run_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (run_dir / "scenario.json").unlink()
    assert exit_code(["verify", str(run_dir), "--engine", "duckdb"]) == EXIT_WRONG_USAGE
    assert f"{run_dir} has no scenario.json; put back the file" in capsys.readouterr().err


@pytest.mark.usefixtures("few")
def test_wider_integers_are_no_flaw(run_dir: Path) -> None:
    narrow = pq.read_table(run_dir / READS)
    wide = pa.schema([pa.field(f.name, WIDER.get(f.type, f.type)) for f in narrow.schema])
    pq.write_table(narrow.cast(wide), run_dir / READS)
    assert judge(run_dir).verdict is Verdict.PASS


def test_guarantees_without_the_damaged_table_are_judged(tmp_path: Path) -> None:
    tables = healthy()
    last = max(tables["states"], key=lambda row: int(row["zxid"]))
    after = {"zxid": last["zxid"] + 1, "version": last["version"] + 1, "leader_epoch": 1}
    tables["states"].append(last | after)
    synthetic.write_run(tmp_path, tables, synthetic.scenario(ONE), synthetic.facts(ONE))
    _cut(tmp_path / READS)
    result = judge(tmp_path)
    assert result.verdict is Verdict.FAIL
    assert named(result, "epoch_went_back").status is Status.VIOLATED
    assert any(str(READS) in reason for reason in result.reasons)


@pytest.mark.usefixtures("few")
def test_duplicate_part_is_ignored(run_dir: Path) -> None:
    for table in ("reads", "sends", "replicas"):
        folder = run_dir / "evidence" / table
        shutil.copy(folder / "part-0.parquet", folder / "part-1.parquet")
    result = judge(run_dir)
    expected = "evidence/sends/part-1.parquet is the same as part-0.parquet and was left out"
    assert (result.verdict, expected in result.reasons) == (Verdict.UNKNOWN, True)
    assert [
        guarantee.name for guarantee in result.guarantees if guarantee.status is Status.VIOLATED
    ] == []


@pytest.mark.usefixtures("few")
def test_damaged_parts_are_reported_one_by_one(tmp_path: Path) -> None:
    tables = healthy()
    tables["manifest"] += [
        {"file": f"evidence/reads/{name}.parquet", "kind": "part", "rows": 1}
        | {"ended_properly": True}
        for name in ("part-0", "gone")
    ]
    synthetic.write_run(tmp_path, tables, synthetic.scenario(ONE), synthetic.facts(ONE))
    stranger = pq.read_table(tmp_path / READS).slice(0, 5)
    pq.write_table(stranger, tmp_path / "evidence/reads/stranger.parquet")
    reasons = judge(tmp_path).reasons
    assert "evidence/reads/stranger.parquet is not in the manifest and was left out" in reasons
    assert "evidence/reads/gone.parquet is missing" in reasons


@pytest.mark.usefixtures("few")
def test_duplicate_rows_and_backward_clocks_yield_no_finding(tmp_path: Path) -> None:
    tables = healthy()
    tables["sends"].append(dict(tables["sends"][70]))
    tables["sends"][50]["complete_ns"] = tables["sends"][50]["invoke_ns"] - 1
    tables["sends"][90]["invoke_ns"] = END_NS
    result = judged(tmp_path, tables)
    assert result.verdict is Verdict.UNKNOWN
    assert "1 send doubled in evidence/sends" in result.reasons
    expected = "2 sends ended before beginning: a clock went back (evidence/sends)"
    assert expected in result.reasons


@pytest.mark.parametrize("client", ["c0", "final"])
def test_duplicate_row_of_a_read_is_no_second_delivery(client: str, tmp_path: Path) -> None:
    tables = healthy()
    tables["reads"] += [
        dict(row) for row in tables["reads"] if (row["client"], row["offset"]) == (client, 50)
    ]
    tables["manifest"] = [row for row in tables["manifest"] if row["kind"] == "journal"]
    result = judged(tmp_path, tables)
    expected = "at a place in a poll that another row has (evidence/reads)"
    assert (result.verdict, [reason for reason in result.reasons if expected in reason]) == (
        Verdict.UNKNOWN, result.reasons,
    )  # fmt: skip


@pytest.mark.parametrize(("table", "ahead"), [("sends", "complete_ns"), ("polls", "complete_ns")])
@pytest.mark.usefixtures("few")
def test_backward_clock_names_its_file_and_the_rest_is_judged(
    table: str, ahead: str, tmp_path: Path
) -> None:
    tables = healthy()
    client = tables[table][0]["client"]
    mine = [row for row in tables[table] if row["client"] == client]
    for row in mine[len(mine) // 2 :]:
        row["invoke_ns"] -= 40 * S
        row[ahead] -= 40 * S
    result = judged(tmp_path, tables)
    assert result.verdict is Verdict.UNKNOWN
    (sentence,) = [reason for reason in result.reasons if "a clock went back" in reason]
    assert sentence.startswith(f"a clock went back 1 times in evidence/{table}/part-0.parquet, by ")
    assert Status.VIOLATED not in {guarantee.status for guarantee in result.guarantees}
    assert named(result, "lost_write").status is Status.HOLDS


def test_repeated_rows_do_not_change_the_judgement(tmp_path: Path) -> None:
    synthetic.write_run(tmp_path, healthy(), synthetic.scenario(ONE), synthetic.facts(ONE))
    for name, columns in (
        ("sends", ["acks", "idempotent", "tombstone", "topic"]),
        ("passes", ["leader", "topic"]),
        ("faults", ["acted"]),
    ):
        part = tmp_path / "evidence" / name / "part-0.parquet"
        pq.write_table(pq.read_table(part).drop_columns(columns), part)
    result = judge(tmp_path)
    assert result.verdict is Verdict.PASS, result.reasons
    assert named(result, "stale_append").opportunities == ONE.records


@pytest.mark.usefixtures("few")
def test_answers_before_their_requests_yield_no_finding(tmp_path: Path) -> None:
    tables = healthy()
    tables["offset_answers"][0]["complete_ns"] -= 700 * S
    tables["offset_answers"][0]["offset"] += 5
    result = judged(tmp_path, tables)
    assert result.verdict is Verdict.UNKNOWN
    assert any("(evidence/offset_answers)" in reason for reason in result.reasons)


@pytest.mark.usefixtures("few")
def test_transaction_that_ended_before_its_start_is_a_reason(tmp_path: Path) -> None:
    tables = healthy()
    txn = {"run": "r", "client": "p0", "session": 0, "txn": 1, "outcome": "committed"}
    tables["txns"] = [txn | {"begin_ns": END_NS, "end_ns": END_NS - 1}]
    expected = "1 transaction ended before beginning: a clock went back (evidence/txns)"
    assert expected in judged(tmp_path, tables).reasons


@pytest.mark.parametrize("table", ["commits", "states", "faults"])
@pytest.mark.usefixtures("few")
def test_columns_of_a_wrong_type_yield_no_finding(table: str, run_dir: Path) -> None:
    part = run_dir / "evidence" / table / "part-0.parquet"
    rows = pq.read_table(part)
    for name in ("zxid", "offset", "begin_ns"):
        at = rows.schema.get_field_index(name)
        if at >= 0:
            rows = rows.set_column(at, name, rows.column(name).cast(pa.string()))
    pq.write_table(rows, part)
    result = judge(run_dir)
    assert result.verdict is Verdict.UNKNOWN
    assert [
        guarantee.name for guarantee in result.guarantees if guarantee.status is Status.VIOLATED
    ] == []
    assert named(result, "lost_write").status is Status.HOLDS


@pytest.mark.usefixtures("few")
def test_dangling_and_outward_links_are_ignored(
    run_dir: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A link in place of a part is a reason; a link in place of a folder is not followed."""
    outside = tmp_path_factory.mktemp("outside")
    (outside / "verify").mkdir()
    (outside / "verify" / "kept").touch()
    (run_dir / "work").symlink_to(outside)
    (run_dir / "findings").symlink_to(outside)
    part = run_dir / "evidence" / "polls" / "part-1.parquet"
    part.symlink_to(part.name)
    result = judge(run_dir)
    assert (outside / "verify" / "kept").exists()
    assert result.verdict is Verdict.UNKNOWN
    assert result.reasons[0].startswith(
        "evidence/polls/part-1.parquet is not a complete Parquet file"
    )


@pytest.mark.usefixtures("few")
def test_invalid_unicode_and_duplicate_columns_are_reasons(run_dir: Path) -> None:
    part = run_dir / "evidence" / "clients" / "part-0.parquet"
    rows = pq.read_table(part)
    bad = pa.array([b"\xff\xfe"] * len(rows), pa.binary())
    text = pa.Array.from_buffers(pa.string(), len(bad), bad.buffers())
    at = rows.schema.get_field_index("library")
    pq.write_table(rows.set_column(at, "library", text), part)
    reads = run_dir / "evidence" / "reads" / "part-0.parquet"
    rows = pq.read_table(reads)
    names = [*rows.column_names, "offset"]
    pq.write_table(pa.table([*rows.columns, rows["offset"]], names=names), reads)
    sentences = " ".join(judge(run_dir).reasons)
    assert (
        "evidence/reads/part-0.parquet is not a complete Parquet file (it has offset twice)"
        in sentences
    )
    assert "evidence/clients/part-0.parquet is not a complete Parquet file" in sentences


@pytest.mark.usefixtures("few")
def test_settings_that_are_no_numbers_are_reported_with_their_file(tmp_path: Path) -> None:
    scenario, run_facts = synthetic.scenario(ONE), synthetic.facts(ONE)
    scenario.cluster.config["replica.lag.time.max.ms"] = "soon"
    scenario.workload.options["transaction_timeout_ms"] = "x"
    run_facts.topics[0].config["min.insync.replicas"] = "zwei"
    synthetic.write_run(tmp_path, healthy(), scenario, run_facts)
    result = judge(tmp_path)
    mend = "which is not a number; write one and judge again"
    assert result.verdict is Verdict.UNKNOWN
    assert [reason for reason in result.reasons if mend in reason] == [
        f"scenario.json, cluster: replica.lag.time.max.ms is 'soon', {mend}",
        f"scenario.json, workload: transaction_timeout_ms is 'x', {mend}",
        f"run.json, topic urteil: min.insync.replicas is 'zwei', {mend}",
    ]
    assert named(result, "lost_write").status is Status.HOLDS
