"""The reasons against PASS, and the precedence of verdicts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.harness.verify import example_runs
from tests.harness.verify.example_runs import ONE, alone, healthy, judged, named
from urteil.chaos.capabilities import IDEMPOTENCE
from urteil.harness.scenario import FaultSpec
from urteil.harness.verify import judge, judgement, synthetic
from urteil.harness.verify.guarantees import GUARANTEES
from urteil.harness.verify.result import Status, Verdict, load_result
from urteil.harness.verify.synthetic import END_NS, S


def _no_table(name: str) -> Callable[[example_runs.Tables], None]:
    return lambda tables: tables.pop(name)  # type: ignore[return-value]


def _fault(**changes: object) -> Callable[[example_runs.Tables], None]:
    return lambda tables: tables["faults"][0].update(changes)


def _silent_fault(tables: example_runs.Tables) -> None:
    """Moves all sends of the fault's time, and their outcomes, before the fault."""
    fault = tables["faults"][0]
    for row in tables["sends"]:
        if row["invoke_ns"] < fault["healed_ns"] and row["complete_ns"] >= fault["begin_ns"]:
            row["invoke_ns"] = row["complete_ns"] = fault["begin_ns"] - 1


def _awaited_send(tables: example_runs.Tables) -> None:
    """The only sender waits for one outcome through the fault."""
    _silent_fault(tables)
    fault, sends = tables["faults"][0], tables["sends"]
    last = max(
        (row for row in sends if row["invoke_ns"] < fault["begin_ns"]),
        key=lambda row: int(row["invoke_ns"]),
    )
    last["complete_ns"] = fault["healed_ns"] + 1


def _cut_pass(tables: example_runs.Tables) -> None:
    tables["passes"][0]["complete"] = False


def _cut_journal(tables: example_runs.Tables) -> None:
    tables["manifest"][0]["ended_properly"] = False


def _lost_rows(tables: example_runs.Tables) -> None:
    tables["manifest"].append({"file": "evidence/polls", "kind": "table", "rows": 9_999})


def _crowd_of_commits(tables: example_runs.Tables) -> None:
    """Commits of unknown outcome that each took effect: 2^14 sets of them."""
    for number in range(14):
        made_of = {"offset": number, "invoke_ns": END_NS + number, "complete_ns": None}
        tables["commits"].append(tables["commits"][-1] | made_of | {"outcome": "info"})
        asked = {"offset": number, "invoke_ns": END_NS + S, "complete_ns": END_NS + 2 * S}
        tables["commit_reads"].append(tables["commit_reads"][-1] | asked)


def _silent_kill_of_a_client(tables: example_runs.Tables) -> None:
    """The only client that sent is killed."""
    _silent_fault(tables)
    tables["faults"][0] |= {"fault": "kill_client", "targets": '["p0"]', "effects": None}


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (_no_table("states"), "the evidence has no states"),
        (_no_table("manifest"), "the evidence has no manifest"),
        (_fault(acted=False, proof="b1 answered"), "fault crash did not act: b1 answered"),
        (_fault(healed_ns=None), "fault crash was never healed"),
        (_no_table("faults"), "only 0 of 1 faults left a row in the evidence"),
        (_silent_fault, "there was no send during crash on b1"),
        (_cut_pass, "a final pass over urteil-0 stopped before its end"),
        (_cut_journal, "the journal of p0 did not end properly"),
        (_lost_rows, "the manifest says 9999 rows of polls, there are 16"),
        (
            _crowd_of_commits,
            "more orders of the commits of group in urteil-0 are possible than commit_register "
            "tries",
        ),
    ],
)
@pytest.mark.usefixtures("few")
def test_missing_evidence_makes_the_verdict_unknown(
    damage: Callable[[example_runs.Tables], None], reason: str, tmp_path: Path
) -> None:
    tables = healthy()
    damage(tables)
    result = judged(tmp_path, tables)
    assert result.verdict is Verdict.UNKNOWN
    assert reason in result.reasons


@pytest.mark.parametrize("change", [_silent_kill_of_a_client, _awaited_send])
@pytest.mark.usefixtures("few")
def test_dead_or_waiting_client_need_not_send(
    change: Callable[[example_runs.Tables], None], tmp_path: Path
) -> None:
    tables = healthy()
    change(tables)
    reasons = judged(tmp_path, tables).reasons
    assert not [reason for reason in reasons if "no send" in reason]


@pytest.mark.usefixtures("few")
def test_too_little_traffic_makes_it_unknown(tmp_path: Path) -> None:
    scenario = synthetic.scenario(ONE, minimum_acks=150)
    result = judged(tmp_path, healthy(), scenario=scenario)
    assert result.verdict is Verdict.UNKNOWN
    expected = "only 107 acknowledgements after the faults, at least 150 are required"
    assert result.reasons == [expected]


@pytest.mark.parametrize("table", ["sends", "reads", "replicas", "logs", "passes", "manifest"])
def test_damaged_evidence_alone_yields_no_finding(table: str, tmp_path: Path) -> None:
    tables = healthy()
    for name in ("sends", "reads", "replicas", "logs", "passes"):
        entry = {"file": f"evidence/{name}", "kind": "table", "rows": len(tables[name])}
        tables["manifest"].append(entry | {"ended_properly": True})
    tables[table] = tables[table][1::2] if table != "manifest" else []
    if table == "manifest":
        tables["sends"] = tables["sends"][1::2]
    result = judged(tmp_path, tables)
    assert result.verdict is Verdict.UNKNOWN, result.reasons


def _declare_rows(tables: example_runs.Tables, *names: str, part: str = "") -> None:
    kind = "part" if part else "table"
    tables["manifest"] += [
        {"file": f"evidence/{name}{part}", "kind": kind, "rows": len(tables[name])}
        | {"ended_properly": True}
        for name in names
    ]


@pytest.mark.usefixtures("few")
def test_table_absent_from_the_manifest_is_accepted(tmp_path: Path) -> None:
    """Another tool that writes a history may count only the tables that it needs."""
    tables = healthy()
    _declare_rows(tables, *tables.keys() - {"manifest", "polls", "samples"})
    assert judged(tmp_path, tables).verdict is Verdict.PASS


@pytest.mark.usefixtures("few")
def test_parts_alone_prove_as_much_as_their_table(tmp_path: Path) -> None:
    tables = healthy()
    _declare_rows(tables, *tables.keys() - {"manifest", "samples"}, part="/part-0.parquet")
    assert judged(tmp_path / "whole", tables).verdict is Verdict.PASS
    tables["reads"].pop()
    result = judged(tmp_path / "cut", tables)
    expected = "the manifest says 2000 rows of evidence/reads/part-0.parquet, there are 1999"
    assert result.verdict is Verdict.UNKNOWN, result.reasons
    assert expected in result.reasons


@pytest.mark.usefixtures("few")
def test_every_replica_must_have_been_asked(tmp_path: Path) -> None:
    tables = healthy()
    for row in tables["passes"]:
        row["leader"] = 1 if row["final"] else None
    values = [f"no complete final pass asked broker {n} of urteil-0" for n in (2, 3)]
    result = judged(tmp_path, tables)
    assert (result.verdict, result.reasons) == (Verdict.UNKNOWN, values)


@pytest.mark.usefixtures("few")
def test_problems_of_the_lab_make_it_unknown(tmp_path: Path) -> None:
    facts = synthetic.facts(ONE, problems=["zk1 died"])
    result = judged(tmp_path, healthy(), facts=facts)
    assert (result.verdict, result.reasons) == (Verdict.UNKNOWN, ["zk1 died"])


@pytest.mark.usefixtures("few")
def test_failures_of_the_lab_precede_missing_evidence(tmp_path: Path) -> None:
    tables = healthy()
    tables["sends"].clear()
    result = judged(tmp_path, tables, facts=synthetic.facts(ONE, problems=["b2 did not start"]))
    assert result.reasons[:2] == ["b2 did not start", "the evidence has no sends"]


@pytest.mark.parametrize(("ran", "verdict"), [(False, Verdict.UNKNOWN), (True, Verdict.PASS)])
@pytest.mark.usefixtures("few")
def test_mutant_without_hit_makes_the_run_unknown(
    ran: bool, verdict: Verdict, tmp_path: Path
) -> None:
    facts = synthetic.facts(ONE, mutant="no_crc_check", mutant_ran=ran)
    assert judged(tmp_path, healthy(), facts=facts).verdict is verdict


def test_a_scenarios_own_guarantee_must_be_judged(tmp_path: Path) -> None:
    scenario = synthetic.scenario(ONE, guarantees=("ack_below_min_isr", "no_such_thing"))
    result = judged(tmp_path, healthy(), scenario=scenario)
    assert result.verdict is Verdict.UNKNOWN
    assert result.reasons == [
        "the scenario's own guarantee ack_below_min_isr was not judged: "
        "no opportunity to see it broken",
        "no guarantee is named no_such_thing",
    ]


def test_a_check_that_raises_is_unknown_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = {**GUARANTEES, "phantom": _raising()}
    monkeypatch.setattr(judgement, "GUARANTEES", broken)
    result = judged(tmp_path, healthy())
    assert result.verdict is Verdict.UNKNOWN
    assert named(result, "phantom").status is Status.UNKNOWN
    assert "no_such_table" in named(result, "phantom").reason


def _raising() -> object:
    import dataclasses

    return dataclasses.replace(GUARANTEES["phantom"], violations="SELECT * FROM no_such_table")


def test_fail_outranks_unknown(tmp_path: Path) -> None:
    tables = healthy()
    tables["replicas"][5]["intact"] = False
    result = judged(tmp_path, tables, facts=synthetic.facts(ONE, problems=["zk1 died"]))
    assert result.verdict is Verdict.FAIL
    assert "zk1 died" in result.reasons


def _begin_later(tables: dict[str, list[dict[str, Any]]], offset: int) -> None:
    """One final pass leaves out the first records of the log, by its reported start."""
    is_reported = next(row for row in tables["passes"] if row["final"])
    answer = next(row for row in tables["offset_answers"] if row["query"] == "latest")
    tables["offset_answers"].append(answer | {"query": "earliest", "offset": offset})
    is_reported["from_offset"] = offset
    name = [is_reported[column] for column in ("client", "session", "pass", "partition")]
    tables["reads"] = [
        row
        for row in tables["reads"]
        if row["offset"] >= offset
        or [row[column] for column in ("client", "session", "pass", "partition")] != name
    ]


def test_a_final_pass_that_began_too_late_is_found(tmp_path: Path) -> None:
    tables = healthy()
    _begin_later(tables, 3)
    result = alone("unseen", tmp_path, tables)
    assert (result.status, result.violations) == (Status.VIOLATED, 3)
    assert {finding.sub_kind for finding in result.findings} == {"before the begin"}


@pytest.mark.parametrize("why", ["deleted by somebody", "one log begins later", "by its choice"])
def test_a_pass_may_begin_later_where_records_were_deleted(tmp_path: Path, why: str) -> None:
    tables = healthy()
    _begin_later(tables, 3)
    if why == "by its choice":
        tables["offset_answers"].pop()
    elif why == "one log begins later":
        tables["logs"][0]["log_start"] = 3
    else:
        tables["admin_ops"] = [
            {"run": "r", "act": "delete records", "subject": tables["logs"][0]["topic"]}
            | {"outcome": "info", "before": "{}", "after": "{}", "invoke_ns": 1, "complete_ns": 2}
        ]
    assert alone("unseen", tmp_path, tables).status is not Status.VIOLATED


def test_a_final_pass_that_stopped_short_leaves_unseen_unknown(tmp_path: Path) -> None:
    tables = healthy()
    _cut_pass(tables)
    assert alone("unseen", tmp_path, tables).status is Status.UNKNOWN


@pytest.mark.usefixtures("few")
def test_run_without_evidence_is_unknown(tmp_path: Path) -> None:
    result = judged(tmp_path, {}, facts=synthetic.facts(ONE, topics=[]), canary=True)
    assert result.verdict is Verdict.UNKNOWN
    assert not [guarantee for guarantee in result.guarantees if guarantee.status is Status.UNKNOWN]


@pytest.mark.usefixtures("few")
def test_fault_requested_twice_must_act_twice(tmp_path: Path) -> None:
    crash = FaultSpec(fault="crash", at_s=1.0)
    scenario = synthetic.scenario(ONE, faults=(crash, crash))
    result = judged(tmp_path, healthy(), scenario=scenario)
    assert "only 1 of 2 faults left a row in the evidence" in result.reasons


def test_result_is_on_disk_and_the_work_folder_removed(tmp_path: Path) -> None:
    synthetic.write_run(tmp_path, healthy(), synthetic.scenario(ONE), synthetic.facts(ONE))
    result = judge(tmp_path, engine="duckdb")
    assert msgspec.json.encode(load_result(tmp_path)) == msgspec.json.encode(result)
    assert not list((tmp_path / "work").iterdir())
    assert result.seconds["verify"] > 0
    assert result.counts["acknowledged"] == ONE.records


@pytest.mark.usefixtures("few")
def test_unknown_engine_name_is_rejected(tmp_path: Path) -> None:
    synthetic.write_run(tmp_path, healthy(), synthetic.scenario(ONE), synthetic.facts(ONE))
    with pytest.raises(ValueError, match="no engine named flink"):
        judge(tmp_path, engine="flink")


def _made_twice(tables: example_runs.Tables) -> None:
    """An idempotent send is in every log twice."""
    first = [row for row in tables["replicas"] if row["offset"] == 3]
    tables["replicas"] += [row | {"offset": 10_000} for row in first]


def test_guarantee_without_its_capability_is_not_judged(
    tmp_path: Path,
) -> None:
    own = ("lost_write", "duplicate")
    results = {}
    for lacks in ([], [IDEMPOTENCE.name]):
        folder = tmp_path / f"lacks{len(lacks)}"
        tables = healthy()
        _made_twice(tables)
        scenario = synthetic.scenario(ONE, guarantees=own)
        synthetic.write_run(folder, tables, scenario, synthetic.facts(ONE, lacks=lacks))
        results[len(lacks)] = judge(folder, engine="duckdb")
    with_it, without_it = (named(results[number], "duplicate") for number in (0, 1))
    assert (with_it.status, results[0].verdict) == (Status.VIOLATED, Verdict.FAIL)
    assert without_it.status is Status.NOT_JUDGED
    assert without_it.reason == "the brokers lack idempotence (InitProducerId 0, since 0.11.0)"
    assert not [reason for reason in results[1].reasons if "duplicate" in reason]
