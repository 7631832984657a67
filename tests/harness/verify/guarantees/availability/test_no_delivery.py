"""A living group without deliveries is found; a disturbed or silent one is not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.harness.verify import example_runs
from tests.harness.verify.example_runs import Tables
from tests.harness.verify.guarantees.groups.test_group_guarantees import judge
from urteil.harness.scenario import Phase, RunFacts
from urteil.harness.verify import synthetic
from urteil.harness.verify.result import GuaranteeResult, Status
from urteil.harness.verify.synthetic import END_NS, TOPIC, TOPIC_ID, S
from urteil.harness.verify.validation import manifest

ONE = synthetic.Shape(records=60, partitions=1)
LED_NS = END_NS + 18 * S
"""When the last leader of the made-up partition began."""
OVER_NS = END_NS + 80 * S
SESSION = {"run": "r", "client": "g9", "session": 0}
PLACE = {"topic_id": TOPIC_ID, "topic": TOPIC, "partition": 0}


def waiting(**client: Any) -> Tables:
    """A healthy run, and a member of another group that polls and receives nothing."""
    tables = example_runs.healthy(ONE)
    lives = {"kind": "group", "group": "late", "isolation": "read_uncommitted"}
    lives |= {"begin_ns": END_NS + S, "end_ns": OVER_NS}
    model = tables["clients"][0]
    tables["clients"].append(model | SESSION | lives | client)
    tables["polls"] += [polled(END_NS + n * S) for n in range(2, 80)]
    return tables


def polled(at_ns: int, **position: Any) -> dict[str, Any]:
    times = {"poll": at_ns, "invoke_ns": at_ns - 1, "complete_ns": at_ns, "outcome": "ok"}
    return SESSION | times | position


def fault(name: str, target: str, begin_ns: int, end_ns: int) -> dict[str, Any]:
    times = {"begin_ns": begin_ns, "end_ns": end_ns, "healed_ns": end_ns}
    fields = {"fault": name, "targets": json.dumps([target]), "proof": "made up", "acted": True}
    return {"run": "r"} | times | fields


def judged(
    run_dir: Path, tables: Tables, name: str = "no_delivery", **options: str
) -> GuaranteeResult:
    phases = [
        Phase(name="during", begin_ns=0, end_ns=END_NS),
        Phase(name="final", begin_ns=OVER_NS, end_ns=OVER_NS + S),
    ]
    run_facts: RunFacts = synthetic.facts(ONE, phases=phases)
    scenario = synthetic.scenario(ONE)
    load = msgspec.structs.replace(scenario.workload, options=options)
    scenario = msgspec.structs.replace(scenario, workload=load)
    return judge(run_dir, tables, scenario, run_facts, (name,))[name]


def test_group_without_delivery_is_a_violation(tmp_path: Path) -> None:
    result = judged(tmp_path, waiting())
    assert result.status is Status.VIOLATED
    (finding,) = result.findings
    assert (finding.sub_kind, finding.offset) == ("group stands still", 0)
    assert "late received no record of urteil-0 at the end of 62.0 s" in finding.sentence
    assert finding.records[0]["waiting"] == ONE.records


def test_reader_without_delivery_is_a_violation(tmp_path: Path) -> None:
    tables = waiting(kind="consumer", group=None)
    swept = {"pass": 9, "from_offset": 0, "to_offset": 0, "isolation": "read_uncommitted"}
    swept |= {"final": False, "complete": True, "begin_ns": END_NS, "end_ns": OVER_NS}
    tables["passes"].append(SESSION | PLACE | swept)
    (finding,) = judged(tmp_path, tables).findings
    assert finding.sub_kind == "consumer stands still"


@pytest.mark.parametrize(("end_ns", "missed"), [(OVER_NS, []), (None, ["passes"])])
def test_final_readers_that_began_nowhere_left_no_passes(
    end_ns: int | None, missed: list[str], tmp_path: Path
) -> None:
    """If other readers left passes, or these readers died, the table may be missing."""
    tables = waiting(kind="final", group=None, begin_ns=LED_NS + S, end_ns=end_ns)
    tables["passes"], tables["reads"] = [], []
    tables["clients"] = [row for row in tables["clients"] if row["kind"] != "consumer"]
    for row in tables["clients"]:
        if row["kind"] == "final" and row["client"] != "g9":
            row |= {"begin_ns": END_NS, "end_ns": END_NS + 1}
    assert judged(tmp_path, tables).violations == 1
    assert [
        empty_table
        for empty_table in manifest.empty_tables(tmp_path, synthetic.facts(ONE))
        if empty_table == "passes"
    ] == missed


@pytest.mark.parametrize("begun", [True, False])
def test_final_reader_without_records_is_a_violation(begun: bool, tmp_path: Path) -> None:
    """Also a reader without a reported log start or end."""
    tables = waiting(kind="final", group=None, begin_ns=LED_NS + S)
    swept = {"pass": 9, "from_offset": 0, "to_offset": 0, "isolation": "read_uncommitted"}
    swept |= {"final": True, "complete": False, "begin_ns": LED_NS + S, "end_ns": OVER_NS}
    if begun:
        tables["passes"].append(SESSION | PLACE | swept)
    (finding,) = judged(tmp_path, tables).findings
    assert (finding.sub_kind, finding.offset) == ("final reader stands still", 0)


@pytest.mark.parametrize(
    "fault_row",
    [
        fault("latency", "b1->b2", LED_NS + 20 * S, LED_NS + 41 * S),  # 21 s are left
        fault("crash", "b1", LED_NS + 50 * S, OVER_NS),  # the interval before is too short
        fault("rebalance_storm", "group", LED_NS + 10 * S, LED_NS + 50 * S),
        fault("pause_client", "g7", LED_NS + 20 * S, LED_NS + 41 * S),
        fault("slow_poll", "g9", LED_NS, OVER_NS),
        fault("quota", "g9", LED_NS + S, LED_NS + 2 * S),
    ],
    ids=lambda fault: str(fault["fault"]),
)
def test_disturbed_group_may_wait(tmp_path: Path, fault_row: dict[str, Any]) -> None:
    tables = waiting()
    tables["faults"].append(fault_row)
    if fault_row["fault"] == "crash":
        tables["faults"].append(fault("pause", "b2", LED_NS + S, LED_NS + 40 * S))
    assert judged(tmp_path, tables).status is not Status.VIOLATED


def test_dead_member_is_expected_within_its_session_timeout(tmp_path: Path) -> None:
    tables = waiting()
    tables["faults"].append(fault("kill_client", "g8", LED_NS + S, LED_NS + 40 * S))
    assert judged(tmp_path / "short", tables, session_timeout_ms="3000").violations == 2
    assert judged(tmp_path / "long", tables, session_timeout_ms="20000").violations == 0


@pytest.mark.parametrize("polls", [[], range(2, 60)], ids=["never", "no more"])
def test_member_that_does_not_poll_requires_no_delivery(tmp_path: Path, polls: Any) -> None:
    tables = waiting()
    tables["polls"] = [row for row in tables["polls"] if row["client"] != "g9"]
    tables["polls"] += [polled(END_NS + n * S) for n in polls]
    assert judged(tmp_path, tables).status is not Status.VIOLATED


def test_records_below_a_groups_position_need_no_delivery(tmp_path: Path) -> None:
    """A commit of unknown outcome counts, too: a member that commits before processing may die
    then."""
    end = {"position_before": 0, "position_after": ONE.records}
    tables = waiting()
    tables["polls"].append(polled(END_NS + 3 * S, **PLACE, **end))
    assert judged(tmp_path / "read", tables).status is not Status.VIOLATED
    tables = waiting()
    commit = {"group": "late", "outcome": "info", "offset": ONE.records}
    tables["commits"].append(SESSION | PLACE | commit | {"invoke_ns": END_NS + 3 * S})
    assert judged(tmp_path / "committed", tables).status is not Status.VIOLATED


def test_records_that_were_not_promised_may_be_out_of_sight(tmp_path: Path) -> None:
    tables = waiting()
    for row in tables["sends"]:
        row["acks"] = 1
    assert judged(tmp_path, tables).status is not Status.VIOLATED


def test_group_of_other_topics_requires_no_delivery(tmp_path: Path) -> None:
    tables = waiting()
    given = {"group": "late", "generation": 1, "event": "assigned", "at_ns": END_NS + S}
    tables["assignments"].append(
        SESSION | PLACE | given | {"topic_id": "another", "topic": "another"}
    )
    assert judged(tmp_path, tables).status is not Status.VIOLATED


def test_readers_of_committed_records_wait_for_transactions(tmp_path: Path) -> None:
    tables = waiting(isolation="read_committed")
    assert judged(tmp_path / "none", tables).status is Status.VIOLATED
    txn = {"client": "t1", "session": 0, "txn": 1, "transactional_id": "t", "outcome": "unknown"}
    tables["txns"] = [{"run": "r"} | txn | {"begin_ns": END_NS - S}]
    assert judged(tmp_path / "open", tables).status is not Status.VIOLATED


def put_out(times: int) -> Tables:
    """The member is assigned a partition and evicted again, every 7 s from the last leader on."""
    tables = waiting()
    for number in range(times):
        at_ns = LED_NS + (13 + 7 * number) * S
        for event, before_ns in (("assigned", S), ("lost", 0)):
            fields = {"group": "late", "generation": 1, "event": event, "at_ns": at_ns - before_ns}
            tables["assignments"].append(SESSION | PLACE | fields)
    return tables


def findings(result: GuaranteeResult) -> list[str]:
    return [finding.sentence for finding in result.findings if finding.sub_kind == "member put out"]


def test_eviction_of_a_polling_member_is_a_violation(tmp_path: Path) -> None:
    (sentence,) = findings(judged(tmp_path / "thrice", put_out(3), "member_expelled"))
    assert sentence.startswith("g9 was removed from its group 3 times in 14.0 s")
    assert not findings(judged(tmp_path / "twice", put_out(2), "member_expelled"))


@pytest.mark.parametrize(
    "fault_row",
    [
        fault("crash", "b1", LED_NS + 16 * S, LED_NS + 17 * S),
        fault("pause_client", "g9", LED_NS + 1 * S, LED_NS + 2 * S),
    ],
    ids=lambda fault: str(fault["fault"]),
)
def test_fault_may_evict_a_member(fault_row: dict[str, Any], tmp_path: Path) -> None:
    tables = put_out(3)
    tables["faults"].append(fault_row)
    assert not findings(judged(tmp_path, tables, "member_expelled"))


def test_late_polling_member_may_be_evicted(tmp_path: Path) -> None:
    tables = put_out(3)
    held_up = range(LED_NS + 14 * S, LED_NS + 17 * S)
    tables["polls"] = [
        row for row in tables["polls"] if row["client"] != "g9" or row["complete_ns"] not in held_up
    ]
    assert not findings(judged(tmp_path, tables, "member_expelled"))


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [("info info fail", 1), ("info ok fail", 0), ("fail fail", 0)],
    ids=["none", "one", "too few to judge"],
)
def test_group_unable_to_commit_is_a_violation(
    outcomes: str, expected: int, tmp_path: Path
) -> None:
    tables = waiting()
    for n, outcome in enumerate(outcomes.split()):
        fields = {"group": "late", "outcome": outcome, "offset": 0}
        at_ns = LED_NS + (50 + n) * S
        tables["commits"].append(
            SESSION | PLACE | fields | {"invoke_ns": at_ns, "complete_ns": at_ns}
        )
    result = judged(tmp_path, tables, "commits_stand_still")
    sentences = [
        finding.sentence for finding in result.findings if finding.sub_kind == "commits stand still"
    ]
    assert len(sentences) == expected
    for sentence in sentences:
        assert "late could commit no offset" in sentence
        assert "its members tried 3 times" in sentence


@pytest.mark.parametrize(
    ("reported", "last_s", "expected"), [([7], 40, 1), ([7], 18, 0), ([7, 8], 40, 0), ([6], 40, 0)]
)
def test_log_start_that_the_same_broker_rejects_is_a_violation(
    reported: list[int], last_s: int, expected: int, tmp_path: Path
) -> None:
    """A final reader requests the log start, its fetch there is rejected, and it repeats both."""
    tables = waiting(kind="final", group=None, begin_ns=LED_NS + S)
    model = tables["passes"][0]
    swept = model | SESSION | PLACE | {"pass": 0, "from_offset": 7, "to_offset": 9, "final": True}
    tables["passes"].append(swept | {"complete": False, "begin_ns": LED_NS, "end_ns": OVER_NS})
    model = tables["offset_answers"][0] | PLACE
    for n in range(10 * last_s):
        at_ns = LED_NS + S + n * S // 10
        refused = {"outcome": "fail", "error": "OffsetOutOfRangeError"}
        tables["polls"].append(polled(at_ns) | refused)
        query = {"query": "earliest", "invoke_ns": at_ns + 1, "complete_ns": at_ns + 2}
        tables["offset_answers"].append(model | query | {"offset": reported[n % len(reported)]})
    result = judged(tmp_path, tables, "wrong_log_start")
    sentences = [
        finding.sentence for finding in result.findings if finding.sub_kind == "turned away"
    ]
    assert len(sentences) == expected
    for sentence in sentences:
        assert sentence.startswith(
            "g9 received 7 as log start of urteil-0 for 39.9 s, and an out-of-range error there "
            "200 times"
        )
