"""Kafka Connect as an application: its lines, settings and leader, and what its outputs show."""

from __future__ import annotations

import base64
import re
import subprocess
from pathlib import Path

import duckdb
import msgspec
import pytest

from urteil.harness.clients.applications import applications, connect_files
from urteil.harness.clients.applications.connect import workers
from urteil.harness.clients.applications.connect.lines import read_line
from urteil.harness.clients.applications.connect.rest import RequestRejected, request, states
from urteil.harness.clients.applications.connect_database import EXPECTED as TABLE
from urteil.harness.clients.applications.connect_files import EXPECTED as FILES
from urteil.harness.clients.applications.declaration import Context
from urteil.harness.clients.payload import Encoder
from urteil.harness.dependencies.class_data_sharing import free_port
from urteil.harness.dependencies.connect import connect_folder
from urteil.harness.dependencies.java import java
from urteil.harness.scenarios import SCENARIOS
from urteil.harness.verify.derived.tables import DERIVED
from urteil.harness.verify.engines.dialect import to_duckdb
from urteil.harness.verify.guarantees import GUARANTEES

JOINED = (
    "%s INFO [Worker clientId=connect-127.0.0.1:1, groupId=g] Joined group at generation 3 with "
    "protocol version 2 and got assignment: Assignment{error=0, leader='x', "
    "leaderUrl='http://127.0.0.1:%d/', offset=4}\n"
)


def context(tmp_path: Path, **options: str) -> Context:
    scenario = SCENARIOS["connect-files"]
    load = msgspec.structs.replace(
        scenario.workload, options={**scenario.workload.options, **options}
    )
    return Context(
        scenario=msgspec.structs.replace(scenario, workload=load),
        run="r",
        run_dir=tmp_path,
        bootstrap=("127.0.0.1:1",),
        topics=(),
        second_bootstrap=(),
        journals=lambda _kind: [],
    )


def line(value: bytes, key: bytes | None = b"k", place: str = "urteil 2 7") -> str:
    coded = "-" if key is None else base64.b64encode(key).decode()
    return f"{place} {coded} {base64.b64encode(value).decode()}"


@pytest.mark.parametrize("key", [b"k\n\xff", None])
def test_line_has_the_place_and_the_identity_of_its_record(key: bytes | None) -> None:
    value = Encoder("r", "p1", 100).encode(3, key, 2, 1_000)
    read = read_line("r", line(value, key))
    assert read is not None
    assert (read.place, read.value_id) == ("urteil-2@7", "r/p1/3")


@pytest.mark.parametrize("text", ["", "a b", line(b"x") + "é", "urteil two 7 - -", line(b"x")[:-1]])
def test_damaged_line_has_no_record(text: str) -> None:
    assert read_line("r", text) is None


def test_line_of_another_payload_has_no_identity() -> None:
    read = read_line("r", line(b"no payload of the lab"))
    assert read is not None
    assert read.value_id is None


def test_states_of_a_connector_include_its_tasks() -> None:
    status = {"connector": {"state": "RUNNING"}, "tasks": [{"id": 0, "state": "FAILED"}]}
    assert states(status) == {"connector": "RUNNING", "0": "FAILED"}


def test_request_without_a_worker_names_the_error() -> None:
    with pytest.raises(RequestRejected, match="GET /connectors: URLError"):
        request([f"127.0.0.1:{free_port()}"], "GET", "/connectors")


def test_leader_is_that_of_the_last_rebalance(tmp_path: Path) -> None:
    run = context(tmp_path)
    (tmp_path / "logs").mkdir()
    run.log("w1").write_text(JOINED % ("2026-01-01 10:00:00,100", run.port("w1")))
    run.log("w2").write_text(JOINED % ("2026-01-01 10:00:09,100", run.port("w2")))
    assert workers.leader(run, ["w1", "w2"]) == "w2"
    assert workers.leader(run, ["w1"]) == "w1"
    run.log("w1").write_text("")
    assert workers.leader(run, ["w1"]) is None


@pytest.mark.parametrize(
    ("options", "support"), [({}, "enabled"), ({"variant": "not-transactional"}, "disabled")]
)
def test_workers_support_exactly_once_sources(
    tmp_path: Path, options: dict[str, str], support: str
) -> None:
    settings = workers.settings(context(tmp_path, **options), "w1.2", ["/plugins"])
    assert settings["exactly.once.source.support"] == support
    assert settings["offset.storage.topic"] == "urteil-group-offset"


def judge(expected: str, promise: str, inputs: str, outputs: str) -> set[tuple[str, str]]:
    """The kinds and keys of what `wrong_result` finds, permitted ones left out."""
    guarantee = GUARANTEES["wrong_result"]
    permitted = " OR ".join(f"COALESCE({excuse.when}, FALSE)" for excuse in guarantee.excuses)
    query = f"SELECT sub_kind, key FROM ({guarantee.violations}) violation WHERE NOT ({permitted})"
    tables = {
        "inputs": f"SELECT * FROM (VALUES {inputs}) t(topic, partition, off, value_id)",
        "outputs": f"SELECT * FROM (VALUES {outputs}) t(sink, position, key, value, value_id)",
        "expected_outputs": to_duckdb(expected),
        "settings": f"SELECT '{promise}' AS promise",
    }
    with duckdb.connect() as base:
        base.register("partitions", DERIVED["partitions"].schema.empty_table())
        for name, rows in tables.items():
            base.execute(f"CREATE TABLE {name} AS {rows}")
        return set(base.execute(to_duckdb(query)).fetchall())


INPUTS = "('t', 0, 0, 'a'), ('t', 0, 1, 'b')"
LINES = "('file', 1, 't-0@0', 'a', 'a'), ('file', 2, 't-0@1', 'b', 'b')"
COPIES = "('copies', 0, 'a line 1', 'a', 'a'), ('copies', 1, 'b line 1', 'b', 'b')"
AGAIN = "('file', 3, 't-0@0', 'a', 'a')"
COPIED_AGAIN = "('copies', 9, 'a line 2', 'a', 'a')"


@pytest.mark.parametrize(
    ("outputs", "findings"),
    [
        (f"{LINES}, {COPIES}", set()),
        (f"{LINES}, {AGAIN}, {COPIES}, {COPIED_AGAIN}", set()),
        (f"{LINES}, {AGAIN}, {COPIES}", {("missing", "a line 2")}),
        (f"{LINES}, {COPIES}, {COPIED_AGAIN}", {("unexpected", "a line 2")}),
        (
            f"{LINES.partition('), ')[0]}), {COPIES.partition('), ')[0]})",
            {("missing", "t-0@1")},
        ),
        (
            f"{LINES.replace('@1', '@5')}, {COPIES}",
            {("missing", "t-0@1"), ("unexpected", "t-0@5")},
        ),
        (
            f"{LINES}, {COPIES}".replace("'b', 'b'", "'a', 'a'", 1),
            {("wrong", "t-0@1"), ("unexpected", "b line 1"), ("missing", "a line 2")},
        ),
    ],
)
def test_sink_may_repeat_lines_and_the_source_copies_each_once(
    outputs: str, findings: set[tuple[str, str]]
) -> None:
    assert judge(FILES, "at-least-once", INPUTS, outputs) == findings


@pytest.mark.parametrize(
    ("rows", "findings"),
    [
        ("('table', 1, 't-0@0', 'a', 'a'), ('table', 2, 't-0@1', 'b', 'b')", set()),
        ("('table', 1, 't-0@0', 'a', 'a')", {("missing", "t-0@1")}),
        (
            "('table', 1, 't-0@0', 'a', 'a'), ('table', 2, 't-0@1', 'b', 'b'), "
            "('table', 3, 't-0@1', 'b', 'b')",
            {("repeated", "t-0@1")},
        ),
    ],
)
def test_table_has_each_record_once(rows: str, findings: set[tuple[str, str]]) -> None:
    assert judge(TABLE, "exactly-once", INPUTS, rows) == findings


SETTINGS = "('acknowledged configuration', 0, 'sink', 'new', NULL)"
STORED = "('configuration', 4, 'sink', 'old', NULL), ('configuration', 7, 'sink', 'new', NULL)"
END = "('end of the file', 0, 'source', '90', NULL), ('position', 3, 'source', '30', NULL)"


@pytest.mark.parametrize(
    ("rows", "findings"),
    [
        (f"{SETTINGS}, {STORED}, {END}, ('position', 8, 'source', '90', NULL)", set()),
        (f"{SETTINGS}, {END}", {("missing", "sink"), ("wrong", "source")}),
        (
            f"{SETTINGS}, {STORED.partition('), ')[0]}), {END}",
            {("wrong", "sink"), ("wrong", "source")},
        ),
    ],
)
def test_internal_topics_have_the_last_configuration_and_position(
    rows: str, findings: set[tuple[str, str]]
) -> None:
    expected = applications()["connect-files"].expected
    assert expected is not None
    read = judge(expected(SCENARIOS["connect-files"]), "exactly-once", INPUTS, rows)
    assert {finding for finding in read if finding[1] in ("sink", "source")} == findings


def test_acts_of_the_scenarios_are_declared() -> None:
    for name in ("connect-files", "connect-database"):
        acts = {f.options["act"] for f in SCENARIOS[name].faults if f.fault == "operate_app"}
        assert acts
        assert acts <= set(applications()[name].acts)


def read_lines(tmp_path: Path, lines: int, batch_size: str) -> int:
    """The lines that Kafka's file source reads of a file that no longer grows."""
    jars = connect_folder() / "jars" / "*"
    program = Path(__file__).with_name("FileTail.java")
    argv = [java(), "-cp", str(jars), str(program), str(tmp_path / "file"), str(lines), batch_size]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120)
    found = re.search(r"^read (\d+)$", done.stdout, re.MULTILINE)
    assert found, done.stderr
    return int(found[1])


@pytest.mark.thorough
def test_file_source_keeps_lines_beyond_a_full_batch(tmp_path: Path) -> None:
    assert read_lines(tmp_path, 40, "37") == 37


@pytest.mark.parametrize(
    ("unread", "quiet_s", "kept"),
    [
        (160, 6.0, True),
        (160, 1.0, False),
        (0, 6.0, False),
        (9_000, 6.0, False),
        ("409", 6.0, False),
    ],
)
def test_source_that_keeps_the_end_of_a_quiet_file_is_restarted(
    unread: int | str, quiet_s: float, kept: bool
) -> None:
    assert connect_files.is_kept(unread, quiet_s) is kept
