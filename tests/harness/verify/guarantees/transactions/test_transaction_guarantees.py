"""Permitted outcomes of transactions are not findings; violations are found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.harness.verify.example_runs import alone
from tests.harness.verify.guarantees.groups.test_group_guarantees import Judged, healthy, judge
from tests.harness.verify.guarantees.transactions.transaction_evidence import (
    MS,
    NAMES,
    ONE,
    PLACE,
    READER,
    Tables,
    first_txn,
    is_gone,
    judged,
    show_records,
    stable,
    transactional_tables,
)
from urteil.harness.verify import synthetic
from urteil.harness.verify.evidence import Row
from urteil.harness.verify.judgement import judge_run
from urteil.harness.verify.result import Status
from urteil.harness.verify.synthetic import BATCH, BEGIN_NS, END_NS, S, write_run


def test_transactions_of_every_fate_are_whole(tmp_path: Path) -> None:
    result = judged(tmp_path, transactional_tables())
    for name in ("torn_txn", "precommitted_read", "hanging_txn", "aborted_read"):
        assert result[name].status is Status.HOLDS, result[name]
    assert result["zombie_write"].status is Status.NOT_JUDGED
    assert {result[name].violations for name in NAMES} == {0}


@pytest.mark.parametrize(
    ("outcome", "shown", "broken"),
    [
        ("committed", 3, "missing"),
        ("committed", 0, "missing"),
        ("aborted", 1, "visible"),
        ("unknown", 2, "partly"),
        ("unknown", 0, None),
        ("unknown", 4, None),
    ],
)
def test_all_of_a_transaction_or_nothing(
    outcome: str, shown: int, broken: str | None, tmp_path: Path
) -> None:
    tables = transactional_tables()
    txn = first_txn(tables, outcome)
    show_records(tables, txn, shown)
    result = judged(tmp_path, tables, "torn_txn")["torn_txn"]
    assert [finding.sub_kind for finding in result.findings] == ([broken] if broken else [])
    if broken:
        assert result.violations == 1
        assert f"Transaction {txn['txn']} of {txn['client']} (id-" in result.findings[0].sentence


def test_client_killed_before_its_commit_committed_nothing(tmp_path: Path) -> None:
    tables = transactional_tables()
    txn = first_txn(tables, "aborted")
    txn |= {"outcome": "unknown", "end_ns": None}
    assert judged(tmp_path / "hidden", tables, "torn_txn")["torn_txn"].violations == 0
    show_records(tables, txn, 4)
    (finding,) = judged(tmp_path / "shown", tables, "torn_txn")["torn_txn"].findings
    assert "nor was its commit requested" in finding.sentence


def test_transaction_torn_by_a_late_end_is_permitted_and_shown(tmp_path: Path) -> None:
    tables = transactional_tables()
    txn = first_txn(tables, "aborted")
    show_records(tables, txn, 2)
    txn["late_end_ns"] = txn["begin_ns"] + MS
    result = judged(tmp_path, tables, "torn_txn")["torn_txn"]
    assert (result.status, result.violations) == (Status.PERMITTED, 0)
    assert "KAFKA-17754" in str(result.findings[0].permitted)


@pytest.mark.parametrize(
    ("fault", "targets", "status"),
    [
        ("partition", '["client->b1"]', Status.PERMITTED),
        ("pause", '["b1"]', Status.PERMITTED),
        ("crash", '["b1"]', Status.VIOLATED),
    ],
)
def test_fault_that_delays_requests_may_delay_an_end(
    fault: str, targets: str, status: Status, tmp_path: Path
) -> None:
    tables = transactional_tables()
    (acted,) = tables["faults"]
    acted |= {"fault": fault, "targets": targets}
    slow, torn = (row for row in tables["txns"] if row["txn"] in (48, 50))
    slow |= {"commit_invoke_ns": acted["begin_ns"] - S, "end_ns": acted["begin_ns"] + 3 * S}
    torn["begin_ns"] = acted["begin_ns"] + 4 * S
    torn |= {"outcome": "unknown", "commit_invoke_ns": None}
    show_records(tables, torn, 1)
    assert judged(tmp_path, tables, "torn_txn")["torn_txn"].status is status


def test_an_end_beyond_an_open_transaction(tmp_path: Path) -> None:
    tables = transactional_tables()
    open_ns = next(row for row in tables["txns"] if row["txn"] == 6)["commit_invoke_ns"]
    stable(tables, 6 * BATCH + 1, open_ns - MS // 2)
    result = judged(tmp_path, tables, "precommitted_read")["precommitted_read"]
    assert [(finding.sub_kind, finding.offset) for finding in result.findings] == [
        ("end", 6 * BATCH)
    ]


def test_uncommitted_read_violates_read_committed_alone(
    tmp_path: Path,
) -> None:
    tables = transactional_tables()
    for client in (READER, "c0"):
        read = next(
            row for row in tables["reads"] if row["client"] == client and row["offset"] == 25
        )
        txn = next(row for row in tables["txns"] if row["txn"] == read["offset"] // BATCH)
        read["read_ns"] = txn["commit_invoke_ns"] - 1
    result = judged(tmp_path, tables, "precommitted_read")["precommitted_read"]
    assert [finding.sub_kind for finding in result.findings] == ["record"]
    assert READER in result.findings[0].sentence


def _take_over(tables: Tables, invoke_ns: int, init_ns: int, **changes: Any) -> None:
    """Another client is initialised with the transactional id of `p0`."""
    model = next(row for row in tables["txns"] if row["client"] == "p0")
    tables["txns"].append(
        model
        | {"client": "p9", "txn": 1, "begin_ns": init_ns + 1, "commit_invoke_ns": init_ns + 2}
        | {"end_ns": init_ns + 3, "init_invoke_ns": invoke_ns, "init_ns": init_ns}
        | changes
    )


def test_zombie_that_writes_and_commits_is_found(tmp_path: Path) -> None:
    tables = transactional_tables()
    _take_over(tables, BEGIN_NS + 12 * S, BEGIN_NS + 13 * S)
    result = judged(tmp_path, tables, "zombie_write")["zombie_write"]
    assert {finding.sub_kind for finding in result.findings} == {"record", "commit"}
    assert {row["client"] for finding in result.findings for row in finding.records[:1]} == {"p0"}


@pytest.mark.parametrize(
    ("outcome", "tables_with_it", "expected"),
    [
        ("info", ("reads",), [200]),
        ("info", ("replicas",), [200]),
        ("info", (), []),
        ("fail", ("replicas",), []),
    ],
)
def test_unanswered_zombie_write_is_proven_by_readers_and_logs(
    outcome: str, tables_with_it: tuple[str, ...], expected: list[int], tmp_path: Path
) -> None:
    tables = transactional_tables()
    (send,) = [row for row in tables["sends"] if row["offset"] == 200]
    since_ns = send["invoke_ns"]
    tables["sends"] = [
        row for row in tables["sends"] if row["client"] != "p0" or row["invoke_ns"] <= since_ns
    ]
    tables["txns"] = [row for row in tables["txns"] if row["begin_ns"] <= since_ns]
    send |= {"outcome": outcome, "offset": None, "error": "made up"}
    for table in {"reads", "replicas"} - {*tables_with_it}:
        tables[table] = [row for row in tables[table] if row["value_id"] != send["value_id"]]
    _take_over(tables, since_ns - 2, since_ns - 1)
    found = judged(tmp_path, tables, "zombie_write")["zombie_write"].findings
    assert [row.offset for row in found if row.sub_kind == "record"] == expected


def test_another_topics_unclean_elections_excuse_no_zombie(tmp_path: Path) -> None:
    tables = transactional_tables()
    _take_over(tables, BEGIN_NS + 12 * S, BEGIN_NS + 13 * S)
    run_facts = synthetic.facts(ONE)
    lax = {"name": "lax", "topic_id": "l", "config": {"unclean.leader.election.enable": "true"}}
    run_facts.topics.append(msgspec.structs.replace(run_facts.topics[0], **lax))
    result = judge(tmp_path, tables, synthetic.scenario(ONE), run_facts, ("zombie_write",))
    sub_kinds = {
        finding.sub_kind for finding in result["zombie_write"].findings if not finding.permitted
    }
    assert sub_kinds == {"record", "commit"}


@pytest.mark.parametrize("what", ["at the same time", "refused", "initialised again"])
def test_current_client_is_no_zombie(what: str, tmp_path: Path) -> None:
    """Nor is a client whose last records were refused, and are nowhere."""
    tables = transactional_tables()
    if what == "at the same time":
        _take_over(tables, BEGIN_NS - 3 * S, BEGIN_NS - S)
    late_ns = BEGIN_NS + 13 * S
    mine = [row for row in tables["txns"] if row["client"] == "p0" and row["end_ns"] > late_ns - S]
    if what != "at the same time":
        _take_over(tables, late_ns - S, late_ns)
    for txn in mine:
        if what == "refused":
            txn |= {"outcome": "fenced", "commit_invoke_ns": None}
        elif what == "initialised again":
            txn |= {"init_invoke_ns": late_ns + 1, "init_ns": late_ns + 2}
    if what == "refused":
        for send in tables["sends"]:
            if send["client"] == "p0" and send["invoke_ns"] > late_ns - 2 * S:
                send |= {"outcome": "info", "offset": None}
        answered = {send["value_id"] for send in tables["sends"] if send["outcome"] == "ok"}
        for table in ("reads", "replicas"):
            tables[table] = [row for row in tables[table] if row["value_id"] in answered]
    assert judged(tmp_path, tables, "zombie_write")["zombie_write"].violations == 0


def test_transaction_open_after_its_timeout_is_found(tmp_path: Path) -> None:
    for after_s, status in ((5, Status.HOLDS), (60, Status.VIOLATED)):
        tables = transactional_tables()
        tables["offset_answers"] = [
            row for row in tables["offset_answers"]
            if row["query"] != "stable" or row["offset"] < ONE.records
        ]  # fmt: skip
        stable(tables, ONE.records - 8, END_NS + after_s * S)
        if after_s == 5:
            stable(tables, ONE.records, END_NS + 9 * S)
        result = judged(tmp_path / str(after_s), tables, "hanging_txn")["hanging_txn"]
        assert result.status is status, result


@pytest.mark.parametrize(
    ("outcome", "after_s", "status"),
    [
        ("fail", 60, Status.VIOLATED),
        ("fail", 5, Status.HOLDS),  # its timeout had not passed
        ("info", 60, Status.HOLDS),  # no coordinator answered
        ("ok", 60, Status.HOLDS),
    ],
)
def test_unavailable_transactional_id_is_found(
    outcome: str, after_s: int, status: Status, tmp_path: Path
) -> None:
    tables = transactional_tables()
    at_ns = END_NS + after_s * S
    tables["admin_ops"] = [
        {"invoke_ns": at_ns - S, "complete_ns": at_ns, "outcome": outcome, "act": "initialise"}
        | {"subject": "urteil-group-t1", "before": None, "after": "{}"}
    ]
    result = judged(tmp_path, tables, "hanging_txn")["hanging_txn"]
    assert result.status is status, result
    assert [finding.sub_kind for finding in result.findings] == ["kept"] * (
        status is Status.VIOLATED
    )


@pytest.mark.parametrize(
    ("from_offset", "to_offset", "log_start", "is_reason"),
    [(0, ONE.records, 0, False), (0, 300, 0, True), (100, ONE.records, 100, False)],
    ids=["all", "cut short", "deleted, but not yet from disks"],
)
def test_committed_records_beyond_every_pass_are_a_reason(
    from_offset: int, to_offset: int, log_start: int, is_reason: bool, tmp_path: Path
) -> None:
    tables = transactional_tables()
    for row in tables["passes"]:
        if row["client"] == READER:
            row |= {"from_offset": from_offset}
            row["to_offset"] = min(row["to_offset"], to_offset)
    for row in tables["logs"]:
        row["log_start"] = log_start
    write_run(tmp_path, tables, synthetic.scenario(ONE), synthetic.facts(ONE))
    reasons = judge_run(tmp_path, engine="duckdb", master=None, session=None, canary=False).reasons
    expected = "of committed transactions beyond every final pass"
    assert any(expected in reason for reason in reasons) == is_reason, reasons


@pytest.mark.parametrize(("lax", "permitted"), [("other", 0), ("__transaction_state", 1)])
def test_unclean_coordinator_election_excuses_a_kept_id(
    lax: str, permitted: int, tmp_path: Path
) -> None:
    tables = transactional_tables()
    at_ns = END_NS + 60 * S
    tables["admin_ops"] = [
        {"invoke_ns": at_ns - S, "complete_ns": at_ns, "outcome": "fail", "act": "initialise"}
        | {"subject": "urteil-group-t1", "before": None, "after": "{}"}
    ]
    run_facts = synthetic.facts(ONE)
    own = {"name": lax, "topic_id": "l", "config": {"unclean.leader.election.enable": "true"}}
    run_facts.topics.append(msgspec.structs.replace(run_facts.topics[0], **own))
    result = judge(tmp_path, tables, synthetic.scenario(ONE), run_facts, ("hanging_txn",))[
        "hanging_txn"
    ]
    assert (result.violations, result.permitted) == (1 - permitted, permitted)


def _copies(tables: Tables, position: int) -> dict[int, Row]:
    """Makes the first 20 transactions inputs and others their outputs; the group's position is
    `position`. Returns the inputs by offset."""
    sends = {row["offset"]: row for row in tables["sends"]}
    visible = [send for send in sorted(sends) if not is_gone(send // BATCH)]
    inputs, outputs = visible[:30], visible[60:90]
    for source, output in zip(inputs, outputs, strict=True):
        sends[output]["source"] = sends[source]["value_id"]
    ends = max(row["end_ns"] for row in tables["txns"])
    who = {"client": "p0", "session": 0, "group": "copiers", "offset": position}
    tables["commits"].append(PLACE | who | {"invoke_ns": ends - 1, "outcome": "ok", "txn": 94}
                             | {"complete_ns": ends})  # fmt: skip
    tables["commit_reads"].append(
        PLACE | who | {"client": "o1", "invoke_ns": ends + S, "complete_ns": ends + S + 1}
        | {"outcome": "ok"}
    )  # fmt: skip
    return {input: sends[input] for input in inputs}


STEPS = ("offsets_not_atomic", "unprocessed", "processed_twice")


def test_complete_transaction_steps_hold(tmp_path: Path) -> None:
    tables = transactional_tables()
    inputs = _copies(tables, 0)
    end = max(inputs) + 1
    tables["commits"][-1]["offset"] = tables["commit_reads"][-1]["offset"] = end
    gone = next(row for row in tables["sends"] if row["txn"] == 95)  # of a transaction that is not
    assert is_gone(95)
    gone["source"] = inputs[min(inputs)]["value_id"]
    result = judged(tmp_path, tables, *STEPS)
    assert {result[name].status for name in STEPS} == {Status.HOLDS}, result


def test_incomplete_transaction_step_is_found(tmp_path: Path) -> None:
    tables = transactional_tables()
    inputs = _copies(tables, 0)
    last = max(inputs)
    tables["commits"][-1]["offset"] = tables["commit_reads"][-1]["offset"] = last
    first = min(inputs)
    (output,) = (row for row in tables["sends"] if row.get("source") == inputs[first]["value_id"])
    output["source"] = inputs[sorted(inputs)[1]]["value_id"]
    result = judged(tmp_path, tables, *STEPS)
    violated = {
        (finding.sub_kind, finding.offset) for finding in result["offsets_not_atomic"].findings
    }
    assert violated == {("consumed", first), ("not consumed", last)}
    assert [finding.offset for finding in result["unprocessed"].findings] == [first]
    assert [finding.offset for finding in result["processed_twice"].findings] == [sorted(inputs)[1]]


@pytest.mark.parametrize(("steps", "expected"), [(1, 0), (2, 1)])
def test_each_group_has_its_own_outputs(steps: int, expected: int, tmp_path: Path) -> None:
    """A second group copies the same input, more slowly: the group identifies the copies
    that was moved with them."""
    tables = transactional_tables()
    inputs = _copies(tables, 0)
    offsets = sorted(inputs)
    commit, answer = tables["commits"].pop(), tables["commit_reads"][-1]
    answer["offset"] = offsets[-1] + 1
    for send in [row for row in tables["sends"] if row.get("source") is not None]:
        whose = {"client": send["client"], "txn": send["txn"]}
        tables["commits"].append(commit | whose | {"offset": offsets[-1] + 1})
    (second, *_) = (row for row in tables["sends"] if row["txn"] == 94)
    second["source"] = inputs[offsets[0]]["value_id"]
    slow = {"group": "slow", "offset": offsets[steps]}
    tables["commits"].append(commit | slow)
    tables["commit_reads"].append(answer | slow)
    result = judged(tmp_path, tables, "offsets_not_atomic", "processed_twice")
    assert result["processed_twice"].violations == 0
    values = [
        (finding.sub_kind, finding.offset) for finding in result["offsets_not_atomic"].findings
    ]
    assert values == [("consumed", offsets[1])][:expected]


def _compacted(run_dir: Path, tables: Tables) -> Judged:
    run_facts = synthetic.facts(ONE)
    config = {"cleanup.policy": "compact", "min.insync.replicas": "2"}
    topics = [msgspec.structs.replace(topic, config=config) for topic in run_facts.topics]
    run_facts = msgspec.structs.replace(run_facts, topics=topics)
    names = ("latest_value_lost", "stale_value_visible", "aborted_read")
    return judge(run_dir, tables, synthetic.scenario(ONE), run_facts, names)


def _clean(tables: Tables, *gone: int) -> Tables:
    """Removes the records of these transactions from every log and pass."""
    values = {row["value_id"] for row in tables["sends"] if row["txn"] in gone}
    for name in ("reads", "replicas"):
        tables[name] = [row for row in tables[name] if row["value_id"] not in values]
    return tables


def _own_keys(tables: Tables) -> Tables:
    """A committed and an aborted transaction write one key each record, all others their own."""
    for row in tables["sends"]:
        shared = row["txn"] in (6, 8)
        row["key"] = f"shared {row['offset'] % BATCH}" if shared else f"own {row['offset']}"
    key = {row["value_id"]: row["key"] for row in tables["sends"]}
    for name in ("reads", "replicas"):
        for row in tables[name]:
            row["key"] = key.get(row["value_id"], row["key"])
    return tables


def test_aborted_record_may_be_cleaned_but_not_its_predecessor(
    tmp_path: Path,
) -> None:
    fine = _compacted(tmp_path / "fine", _clean(_own_keys(transactional_tables()), 8))
    assert fine["latest_value_lost"].status is Status.HOLDS, fine
    assert fine["stale_value_visible"].status is Status.HOLDS
    assert fine["aborted_read"].status is Status.HOLDS
    lost = _compacted(tmp_path / "lost", _clean(_own_keys(transactional_tables()), 6))[
        "latest_value_lost"
    ]
    assert {finding.offset for finding in lost.findings} == {24, 25, 26, 27}


def test_aborted_record_read_by_read_committed_is_found(tmp_path: Path) -> None:
    tables = _own_keys(transactional_tables())
    shown = [
        row | {"client": READER} for row in tables["reads"]
        if row["client"] == "final" and row["pass"] == 1 and row["offset"] == 8 * BATCH
    ]  # fmt: skip
    tables["reads"] += shown
    (finding,) = _compacted(tmp_path, tables)["aborted_read"].findings
    assert (finding.sub_kind, finding.offset) == ("aborted by its client", 8 * BATCH)
    assert "whose client aborted its transaction" in finding.sentence


@pytest.mark.parametrize("begin_ns", [None, 1 << 62])
def test_transaction_without_its_start_is_a_reason_and_ignored(
    begin_ns: int | None, tmp_path: Path
) -> None:
    tables = transactional_tables()
    tables["txns"][3]["begin_ns"] = begin_ns
    synthetic.write_run(tmp_path, tables, synthetic.scenario(ONE), synthetic.facts(ONE))
    result = judge_run(tmp_path, engine="duckdb", master=None, session=None, canary=False)
    accused = {
        guarantee.name for guarantee in result.guarantees if guarantee.status is Status.VIOLATED
    }
    assert not accused & set(NAMES), accused
    (sentence, *_) = (reason for reason in result.reasons if "begin_ns" in reason)
    assert sentence.startswith("evidence/txns/part-0.parquet: "), sentence
    assert not [reason for reason in result.reasons if "cannot be judged" in reason]


@pytest.mark.parametrize(("shown", "expected"), [(200, 0), (100, 1)])
def test_aborted_copy_may_be_repeated(shown: int, expected: int, tmp_path: Path) -> None:
    """One value in an aborted transaction, at 100, and in a later one: there alone it is read."""
    tables = healthy()
    value = next(row["value_id"] for row in tables["replicas"] if row["offset"] == 100)
    writer = {"transactional": True, "producer_id": 7, "producer_epoch": 0}
    marker = {"control": "abort", "value_id": None, "key": None, "sequence": None}
    for row in tables["replicas"]:
        more = {100: writer, 101: writer | marker, 200: {"value_id": value}}
        row |= more.get(row["offset"], {})
    read = next(row for row in tables["reads"] if row["offset"] == 200)
    tables["reads"] = [row for row in tables["reads"] if row["offset"] not in (100, 101, 200)]
    tables["reads"].append(read | {"offset": shown, "value_id": value})
    for client in tables["clients"]:
        client["isolation"] = "read_committed"
    assert alone("aborted_read", tmp_path, tables).violations == expected
