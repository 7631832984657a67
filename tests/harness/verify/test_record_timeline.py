"""The timeline of one record, from made-up evidence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.harness.verify.example_runs import ONE, Tables, healthy
from urteil.cli.exit_codes import EXIT_LAB_FAILURE, EXIT_WRONG_USAGE
from urteil.cli.main import exit_code
from urteil.harness.verify import synthetic
from urteil.harness.verify.record_timeline import (
    Life,
    UnknownRecord,
    life_of,
    lives_at,
    timeline_lines,
)


@pytest.fixture
def tables() -> Tables:
    return healthy()


def life(folder: Path, tables: Tables, value_id: str) -> Life:
    synthetic.write_run(folder, tables, synthetic.scenario(ONE), synthetic.facts(ONE))
    return life_of(folder, value_id)


def test_an_acknowledged_record_is_followed_to_every_replica(
    tmp_path: Path, tables: Tables
) -> None:
    sent = tables["sends"][5]
    timeline = life(tmp_path, tables, sent["value_id"])
    kinds = [moment.kind for moment in timeline.moments]
    assert kinds.index("sent") < kinds.index("acknowledged")
    assert "read" in kinds
    assert "state" in kinds
    assert [moment.at_ns for moment in timeline.moments] == sorted(
        m.at_ns for m in timeline.moments
    )
    assert [replica.offsets for replica in timeline.replicas] == [[sent["offset"]]] * len(
        timeline.replicas
    )
    assert len(timeline.replicas) == len(tables["logs"])
    short = sent["value_id"].split("/", 1)[1]
    assert life_of(tmp_path, short) == timeline


def test_record_at_the_lost_offset_is_named(tmp_path: Path, tables: Tables) -> None:
    sent, usurper = tables["sends"][5], tables["sends"][6]
    for row in tables["replicas"]:
        if row["value_id"] == sent["value_id"]:
            row["value_id"] = usurper["value_id"]
    timeline = life(tmp_path, tables, sent["value_id"])
    assert {replica.instead for replica in timeline.replicas} == {usurper["value_id"]}
    assert f"at its offset stands {usurper['value_id']}" in "\n".join(timeline_lines(timeline))


def test_timeline_shows_unknown_outcome_fault_and_damaged_read(
    tmp_path: Path, tables: Tables
) -> None:
    sent = tables["sends"][5]
    sent |= {"outcome": "info", "error": "RequestTimedOut"}
    for row in tables["reads"]:
        if row["value_id"] == sent["value_id"]:
            row["intact"] = False
    fault = {"fault": "crash", "targets": '["b2"]', "begin_ns": sent["invoke_ns"] - 1,
             "end_ns": sent["invoke_ns"] + 1, "healed_ns": sent["invoke_ns"] + 2, "proof": "",
             "acted": True}  # fmt: skip
    tables["faults"] = [fault]
    text = "\n".join(timeline_lines(life(tmp_path, tables, sent["value_id"])))
    for piece in ("unknown to the client: RequestTimedOut", "crash on b2 begins", "DAMAGED"):
        assert piece in text


def test_messages_on_which_faults_acted_are_listed(tmp_path: Path, tables: Tables) -> None:
    sent = tables["sends"][5]
    event = {"fault": "lose_answer", "link": "client->b1", "direction": "answer", "api": "Produce",
             "version": 9, "client_id": "p1", "act": "drop", "occurrence": 1, "detail": "",
             "message": None}  # fmt: skip
    tables["link_events"] = [
        event | {"at_ns": sent["invoke_ns"] + number, "correlation_id": number}
        for number in range(7)
    ] + [event | {"at_ns": sent["invoke_ns"], "fault": "record", "act": "record"}]
    timeline = life(tmp_path, tables, sent["value_id"])
    texts = [moment.text for moment in timeline.moments if moment.kind == "message"]
    assert texts[0] == "lose_answer: drop the answer Produce v9, id 0 of p1, on client->b1"
    assert texts[-1] == "lose_answer: drop 2 more, answer Produce"
    assert len(texts) == 6


def test_unknown_client_is_named_with_an_example(tmp_path: Path, tables: Tables) -> None:
    with pytest.raises(UnknownRecord, match=f"like {tables['sends'][0]['value_id']}"):
        life(tmp_path, tables, "p9/1")


def test_timeline_of_an_offset_lists_all_its_records(tmp_path: Path, tables: Tables) -> None:
    sent, other = tables["sends"][5], tables["sends"][6]
    other["offset"] = sent["offset"]
    timeline = life(tmp_path, tables, sent["value_id"])
    place = f"{timeline.place}@{sent['offset']}"
    assert lives_at(tmp_path, place) == [timeline, life_of(tmp_path, other["value_id"])]


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("nothing-0@5", "no topic nothing in .*; its topics: .*urteil"),
        ("urteil-0@99999", "no client saw one there, and no replica holds one there"),
        ("urteil@5", "is not TOPIC-PARTITION@OFFSET"),
        ("urteil-0@99999999999999999999", "is not TOPIC-PARTITION@OFFSET"),
        ("urteil-9999999999@5", "is not TOPIC-PARTITION@OFFSET"),
    ],
)
def test_timeline_of_an_empty_offset_reports_no_record(
    place: str, message: str, tmp_path: Path, tables: Tables
) -> None:
    life(tmp_path, tables, tables["sends"][5]["value_id"])
    with pytest.raises(UnknownRecord, match=message):
        lives_at(tmp_path, place)


def test_marker_is_not_counted_as_a_record(tmp_path: Path, tables: Tables) -> None:
    sent = tables["sends"][5]
    for row in tables["replicas"]:
        if row["offset"] == sent["offset"]:
            row |= {"value_id": None, "control": "commit"}
    place = life(tmp_path, tables, sent["value_id"]).place
    for table in ("sends", "reads"):
        tables[table] = [row for row in tables[table] if row["offset"] != sent["offset"]]
    life(tmp_path, tables, tables["sends"][6]["value_id"])
    with pytest.raises(UnknownRecord, match="a commit marker stands there"):
        lives_at(tmp_path, f"{place}@{sent['offset']}")


def test_the_command(tmp_path: Path, tables: Tables, capsys: pytest.CaptureFixture[str]) -> None:
    value_id = tables["sends"][5]["value_id"]
    life(tmp_path, tables, value_id)
    assert exit_code(["explain", str(tmp_path), value_id, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["value_id"] == value_id
    assert exit_code(["explain", str(tmp_path), "p9/1"]) == EXIT_WRONG_USAGE
    assert exit_code(["explain", str(tmp_path), "urteil-0@5", "--json"]) == 0
    (there,) = json.loads(capsys.readouterr().out)
    assert there["value_id"] in {sent["value_id"] for sent in tables["sends"]}
    part = tmp_path / "evidence" / "reads" / "part-0.parquet"
    part.write_bytes(part.read_bytes()[:400])
    assert exit_code(["explain", str(tmp_path), value_id]) == EXIT_LAB_FAILURE
    assert "part-0.parquet" in capsys.readouterr().err


def test_deliveries_of_a_share_group_are_shown_with_their_answers(
    tmp_path: Path, tables: Tables
) -> None:
    sent = tables["sends"][5]
    row = {name: sent[name] for name in ("topic_id", "topic", "partition", "offset", "value_id")}
    row |= {"client": "m1", "session": 0, "group": "g", "poll": 1, "intact": True}
    at_ns = sent["complete_ns"]
    times = {"requested_ns": at_ns, "read_ns": at_ns + 1, "invoke_ns": at_ns + 2}
    late = {"delivery_count": 1, "acknowledgement": "accept", "outcome": "fail"}
    again = {"delivery_count": 2, "acknowledgement": "reject", "outcome": "ok"}
    tables["deliveries"] = [
        row | times | late | {"complete_ns": at_ns + 3, "error": "INVALID_RECORD_STATE"},
        row | times | again | {"complete_ns": at_ns + 4, "error": None},
    ]
    text = "\n".join(timeline_lines(life(tmp_path, tables, sent["value_id"])))
    for piece in (
        "read by m1 at offset 5, delivery 2 of g",
        "m1 answers accept: failed for certain: INVALID_RECORD_STATE",
        "m1 answers reject: acknowledged",
    ):
        assert piece in text
