"""Permitted behaviour of a group is not a finding; each violation is found with its record."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.harness.verify import example_runs
from tests.harness.verify.example_runs import Tables
from tests.harness.verify.shared_answers import SharedDuck
from urteil.harness.evidence.schema import SCHEMAS
from urteil.harness.scenario import RunFacts, Scenario
from urteil.harness.verify import judgement, shared_tables, synthetic
from urteil.harness.verify.check import Places, check
from urteil.harness.verify.engines.engine import open_views
from urteil.harness.verify.guarantees import GUARANTEES
from urteil.harness.verify.result import GuaranteeResult, Status
from urteil.harness.verify.synthetic import CRASH_NS, END_NS, LED_NS, TOPIC, TOPIC_ID, S

GROUPS = (
    "two_owners",
    "zombie_commit",
    "generation_went_back",
    "commit_beyond_processed",
    "commit_went_back",
    "commit_register",
)
PLACE = {"run": "r", "topic_id": TOPIC_ID, "topic": TOPIC, "partition": 0, "group": "group"}
ONE = synthetic.Shape(records=400, partitions=1)
HALF = ONE.records // 2
Judged = dict[str, GuaranteeResult]


def healthy() -> Tables:
    return example_runs.healthy(ONE)


def judge_groups(run_dir: Path, tables: Tables, *, scenario: Scenario | None = None) -> Judged:
    """The results of the group guarantees for a run with these tables."""
    return judge(run_dir, tables, scenario or synthetic.scenario(ONE), synthetic.facts(ONE), GROUPS)


def judge(
    run_dir: Path, tables: Tables, scenario: Scenario, facts: RunFacts, names: tuple[str, ...]
) -> Judged:
    """The results of the guarantees `names` for a run with these tables."""
    synthetic.write_run(run_dir, tables, scenario, facts)
    derived = judgement.prepare(run_dir, scenario, facts)
    engine = SharedDuck(run_dir / "work")
    try:
        open_views(engine, run_dir, derived)
        shared_tables.build(engine, expected=derived.expected)
        present = {name for name in SCHEMAS if tables.get(name)}
        return {name: check(engine, GUARANTEES[name], Places(derived), present) for name in names}
    finally:
        engine.close()


def add(tables: Tables, table: str, client: str, generation: int | None, **columns: Any) -> None:
    member = {"client": client, "session": 0, "generation": generation, "member_id": client}
    tables[table].append(PLACE | member | columns)


def add_commit(tables: Tables, client: str, generation: int | None, offset: int, at_ns: int,
           outcome: str = "ok", error: str | None = None) -> None:  # fmt: skip
    end_ns = None if outcome == "info" else at_ns + 1000
    add(tables, "commits", client, generation, offset=offset, outcome=outcome, error=error,
        invoke_ns=at_ns, complete_ns=end_ns, processed_to=offset)  # fmt: skip


def add_commit_read(tables: Tables, offset: int | None, at_ns: int, client: str = "o1") -> None:
    add(tables, "commit_reads", client, None, offset=offset, outcome="ok",
        invoke_ns=at_ns, complete_ns=at_ns + 1000)  # fmt: skip


def add_assignment(tables: Tables, client: str, generation: int, at_ns: int, event: str = "assigned"
             ) -> None:  # fmt: skip
    add(tables, "assignments", client, generation, event=event, at_ns=at_ns)


def assert_only(result: Judged, *broken: str) -> None:
    violated = {name for name, outcome in result.items() if outcome.status is Status.VIOLATED}
    assert violated == set(broken), [(n, result[n].reason, result[n].findings) for n in GROUPS]


def test_group_that_hands_over_partitions_has_no_finding(tmp_path: Path) -> None:
    result = judge_groups(tmp_path, healthy())
    assert {outcome.status for outcome in result.values()} == {Status.HOLDS}


@pytest.mark.parametrize("outcome", ["ok", "info", "fail"])
def test_commit_beyond_the_end_is_a_violation(outcome: str, tmp_path: Path) -> None:
    tables = healthy()
    last = max(tables["commits"], key=lambda row: int(row["offset"]))
    late_ns = last["invoke_ns"] + 1_000_000
    add_commit(tables, last["client"], last["generation"], 400, late_ns, outcome)
    add_commit(tables, last["client"], last["generation"], 401, late_ns + 2000, outcome)
    broken = judge_groups(tmp_path, tables)["commit_beyond_processed"]
    sentences = [
        finding.sentence for finding in broken.findings if finding.sub_kind == "beyond the end"
    ]
    expected = f"committed urteil-0@401 for {last['group']}, though the partition ends at 400."
    assert sentences == ([f"{last['client']} {expected}"] if outcome == "ok" else [])


def test_run_without_a_group_is_not_judged(tmp_path: Path) -> None:
    tables = healthy()
    for name in ("commits", "commit_reads", "assignments"):
        del tables[name]
    result = judge_groups(tmp_path, tables)
    assert {outcome.status for outcome in result.values()} == {Status.NOT_JUDGED}


def test_healthy_groups_have_no_finding(tmp_path: Path) -> None:
    """Rebalances of both kinds, dead members, repeated and unknown commits, polled positions."""
    tables = healthy()
    end = END_NS + 100 * S
    add_assignment(tables, "g1", 3, end)  # eager: the same member again
    # cooperative: the member keeps the partition, and only a commit shows it
    add_commit(tables, "g1", 4, ONE.records, end + S)
    add_assignment(tables, "g1", 5, end + 2 * S, "revoked")
    add_assignment(tables, "g2", 5, end + 3 * S)
    # a zombie's commit with an unknown outcome, which took effect between two concurrent reads
    add_commit(tables, "g1", 4, 10, end + 3 * S, "info")
    add_commit_read(tables, 10, end + 5 * S)
    add_commit_read(tables, ONE.records, end + 5 * S + 100)
    add_commit(tables, "g2", 5, 20, end + 7 * S, error="2 attempts")
    add_commit(tables, "g2", 5, 30, end + 8 * S)
    add_commit_read(tables, 20, end + 9 * S)  # the first attempt was applied last
    add_commit(tables, "g2", None, 40, end + 10 * S, "info")  # a client without a generation
    add_commit(tables, "g1", 4, 5, end + 11 * S, "fail")
    assert_only(judge_groups(tmp_path, tables))


def test_member_that_died_before_its_commit_is_no_finding(tmp_path: Path) -> None:
    tables = healthy()
    tables["commits"] = [row for row in tables["commits"] if row["offset"] <= HALF - 50]
    tables["commit_reads"][1]["offset"] = HALF - 50
    tables["reads"] = [
        row for row in tables["reads"]
        if row["client"] not in ("g0", "g1") or row["offset"] < HALF - 50
    ]  # fmt: skip
    assert_only(judge_groups(tmp_path, tables))


def test_recreated_group_counts_generations_from_one(tmp_path: Path) -> None:
    tables = healthy()
    add_assignment(tables, "g0", 1, END_NS + 100 * S)
    add_commit(tables, "g0", 1, ONE.records, END_NS + 101 * S)
    assert judge_groups(tmp_path, tables)["zombie_commit"].status is not Status.VIOLATED


def test_two_owners_in_one_generation_are_found(tmp_path: Path) -> None:
    tables = healthy()
    add_assignment(tables, "g0", 2, LED_NS + S)
    result = judge_groups(tmp_path, tables)
    assert_only(result, "two_owners")
    (finding,) = result["two_owners"].findings
    assert "g0 and g1" in finding.sentence
    assert "generation 2" in finding.sentence


def test_two_owners_are_found_where_one_kept_its_partition_cooperatively(tmp_path: Path) -> None:
    tables = healthy()
    add_commit(tables, "g0", 2, 10, LED_NS + S)
    add_commit(tables, "g1", 2, ONE.records, LED_NS + 2 * S)
    assert_only(judge_groups(tmp_path, tables), "two_owners")


def add_assignments_by_leaders(tables: Tables, *member_ids: str) -> None:
    """Group leaders of generation 2 assign the partition, one after the other, to these members."""
    for number, member_id in enumerate(member_ids):
        add_assignment(tables, f"leader{number}", 2, LED_NS - 2 * S, "given")
        tables["assignments"][-1]["member_id"] = member_id


@pytest.mark.parametrize(
    ("member_ids", "broken"),
    [((), []), (("m1",), []), (("m0", "m1"), []), (("m0",), ["two_owners"])],
)
def test_member_receives_the_assignment_of_its_leader(
    member_ids: tuple[str, ...], broken: list[str], tmp_path: Path
) -> None:
    """Another leader may repeat a generation that was not stored."""
    tables = healthy()
    add_assignments_by_leaders(tables, *member_ids)
    result = judge_groups(tmp_path, tables)
    assert_only(result, *broken)
    for finding in result["two_owners"].findings:
        assert finding.sub_kind == "of another"
        assert "g1 was assigned" in finding.sentence
        assert "which its leader, leader0, had assigned" in finding.sentence


def test_static_member_may_return_with_another_member_id(tmp_path: Path) -> None:
    tables = healthy()
    add_assignments_by_leaders(tables, "m0")
    for row in tables["clients"]:
        row["instance"] = "static-g1" if row["client"] == "g1" else None
    assert_only(judge_groups(tmp_path, tables))


def add_static_member(tables: Tables) -> int:
    """`s1` and its next session `s1.2` are one static member, and own one partition in turn."""
    at_ns = END_NS + 60 * S
    for session, client in enumerate(("s1", "s1.2"), 1):
        fields = {"run": "r", "client": client, "session": session, "group": "static"}
        tables["clients"].append(fields | {"kind": "made up", "instance": "static-s1"})
        add_assignment(tables, client, 1, at_ns + session * S)
        tables["assignments"][-1] |= {"session": session, "group": "static"}
    return at_ns + 3 * S


def add_static_commit(tables: Tables, client: str, session: int, at_ns: int, outcome: str,
                  generation: int = 1) -> None:  # fmt: skip
    add_commit(tables, client, generation, 0, at_ns, outcome)
    tables["commits"][-1] |= {"session": session, "group": "static"}


def test_sessions_of_a_static_member_are_one_owner(tmp_path: Path) -> None:
    tables = healthy()
    at_ns = add_static_member(tables)
    add_static_commit(tables, "s1", 1, at_ns, "fail")
    add_static_commit(tables, "s1.2", 2, at_ns, "ok")
    assert_only(judge_groups(tmp_path, tables))


def test_commit_of_a_replaced_static_member_is_found(tmp_path: Path) -> None:
    tables = healthy()
    add_static_commit(tables, "s1", 1, add_static_member(tables), "ok")
    result = judge_groups(tmp_path, tables)
    assert_only(result, "zombie_commit")
    (finding,) = result["zombie_commit"].findings
    assert (finding.sub_kind, finding.offset) == ("replaced", 0)
    assert "s1.2 had taken its place" in finding.sentence


def test_commit_after_takeover_by_another_static_client_is_found(tmp_path: Path) -> None:
    """Both clients are in their first session."""
    tables = healthy()
    at_ns = add_static_member(tables)
    for row in (*tables["clients"], *tables["assignments"]):
        row["session"] = 0 if row.get("group") == "static" else row["session"]
    add_static_commit(tables, "s1.2", 0, at_ns, "ok")
    assert_only(judge_groups(tmp_path / "its own", tables))
    add_static_commit(tables, "s1", 0, at_ns, "ok")
    result = judge_groups(tmp_path, tables)
    assert [finding.sub_kind for finding in result["zombie_commit"].findings] == ["replaced"]


def test_static_member_that_replaced_its_successor_may_commit(tmp_path: Path) -> None:
    tables = healthy()
    at_ns = add_static_member(tables)
    add_assignment(tables, "s1", 2, at_ns)
    tables["assignments"][-1] |= {"session": 1, "group": "static"}
    add_static_commit(tables, "s1", 1, at_ns + S, "ok", generation=2)
    assert judge_groups(tmp_path, tables)["zombie_commit"].status is not Status.VIOLATED


def test_committed_offset_without_its_metadata_is_found(tmp_path: Path) -> None:
    tables = healthy()
    top = max(row["offset"] for row in tables["commits"])
    for number, intact in enumerate((None, True)):
        add_commit_read(tables, top, END_NS + (60 + number) * S)
        tables["commit_reads"][-1]["intact"] = intact
    assert_only(judge_groups(tmp_path / "noted", tables))
    tables["commit_reads"][-1]["intact"] = False
    (finding,) = judge_groups(tmp_path / "lost", tables)["commit_register"].findings
    assert (finding.sub_kind, finding.offset) == ("note", top)


def test_decreasing_generation_is_a_violation(tmp_path: Path) -> None:
    """Generations of one member are compared: another may learn late of a generation that ended."""
    tables = healthy()
    add_assignment(tables, "g2", 2, END_NS + 60 * S)
    add_assignment(tables, "g2", 4, END_NS + 61 * S)
    assert judge_groups(tmp_path / "another", tables)["generation_went_back"].status is Status.HOLDS
    add_assignment(tables, "g1", 1, END_NS + 62 * S)
    (finding,) = judge_groups(tmp_path / "own", tables)["generation_went_back"].findings
    assert "g1 was in generation 3 of group" in finding.sentence
    assert (finding.records[0]["generation"], finding.records[0]["before"]) == (1, 3)


def test_generations_of_two_groups_are_not_compared(tmp_path: Path) -> None:
    """Where rows have one time, an engine may sort them either way."""
    tables = healthy()
    add_assignment(tables, "g2", 7, END_NS + 60 * S)
    add_assignment(tables, "g2", 4, END_NS + 61 * S)
    tables["assignments"][-1]["group"] = "another"
    for generation in (9, 8):
        add_assignment(tables, "g2", generation, END_NS + 62 * S)
    assert judge_groups(tmp_path, tables)["generation_went_back"].status is Status.HOLDS


def test_partitions_forgotten_by_their_coordinator_are_found(tmp_path: Path) -> None:
    tables = healthy()
    add_assignment(tables, "g1", 3, END_NS + 60 * S)
    tables["assignments"][-1]["event"] = "kept"
    assert judge_groups(tmp_path / "kept", tables)["generation_went_back"].status is Status.HOLDS
    tables["assignments"][-1]["event"] = "forgotten"
    (finding,) = judge_groups(tmp_path / "gone", tables)["generation_went_back"].findings
    assert finding.sub_kind == "forgotten"
    assert "assigned itself a partition in generation 3" in finding.sentence


def test_accepted_commit_of_a_zombie_is_found(tmp_path: Path) -> None:
    tables = healthy()
    add_commit(tables, "g0", 1, 7, END_NS)
    result = judge_groups(tmp_path, tables)
    assert_only(result, "zombie_commit")
    (finding,) = result["zombie_commit"].findings
    assert (finding.offset, finding.records[0]["next_generation"]) == (7, 2)


def test_zombie_of_a_generation_without_assignment_is_found(tmp_path: Path) -> None:
    """A cooperative member, whose partition generation 4 revokes, commits after generation 5 began.

    If the group was recreated in between, another generation 4 may follow generation 5.
    """
    tables = healthy()
    end = END_NS + 100 * S
    add_assignment(tables, "g1", 4, end, "revoked")
    add_assignment(tables, "g2", 5, end + S)
    add_commit(tables, "g1", 4, 7, end + 2 * S)
    (finding,) = judge_groups(tmp_path, tables)["zombie_commit"].findings
    assert (finding.offset, finding.records[0]["next_generation"]) == (7, 5)
    add_assignment(tables, "g1", 1, end + 2 * S - 1)
    assert judge_groups(tmp_path / "anew", tables)["zombie_commit"].status is not Status.VIOLATED


def test_unprocessed_record_is_found(tmp_path: Path) -> None:
    tables = healthy()
    tables["reads"] = [
        row for row in tables["reads"] if not (row["client"] == "g1" and row["offset"] == 300)
    ]
    result = judge_groups(tmp_path, tables)
    (finding,) = result["commit_beyond_processed"].findings
    assert finding.offset == 300


def test_reads_of_another_group_do_not_count_as_processed(tmp_path: Path) -> None:
    """Assignments identify the members of a group, not the kind of a client."""
    tables = healthy()
    for row in tables["clients"]:
        row |= {"kind": "consumer", "group": None} if row["client"] == "g1" else {}
    assert_only(judge_groups(tmp_path / "healthy", tables))
    for row in tables["reads"]:
        if row["client"] == "g1" and row["offset"] == 300:
            row["client"] = "elsewhere"
    model = next(row for row in tables["clients"] if row["client"] == "g1")
    tables["clients"].append(model | {"client": "elsewhere", "kind": "group", "group": "other"})
    (finding,) = judge_groups(tmp_path / "other", tables)["commit_beyond_processed"].findings
    assert finding.offset == 300


def test_group_that_commits_before_processing_may_lose_records(tmp_path: Path) -> None:
    tables = healthy()
    tables["reads"] = [
        row for row in tables["reads"] if not (row["client"] == "g1" and row["offset"] == 300)
    ]
    scenario = synthetic.scenario(ONE)
    load = msgspec.structs.replace(scenario.workload, options={"commit": "before"})
    scenario = msgspec.structs.replace(scenario, workload=load)
    result = judge_groups(tmp_path, tables, scenario=scenario)
    assert result["commit_beyond_processed"].status is Status.PERMITTED


@pytest.mark.parametrize("offset", [None, 50])
def test_decreasing_position_is_found(tmp_path: Path, offset: int | None) -> None:
    tables = healthy()
    add_commit_read(tables, offset, END_NS)
    result = judge_groups(tmp_path, tables)
    assert_only(result, "commit_went_back", "commit_register")
    assert f"{ONE.records} had been" in result["commit_went_back"].findings[0].sentence


@pytest.mark.parametrize(
    "excuse", [None, "sought", "sought everywhere", "sought before", "committed lower"]
)
def test_member_that_resumes_below_its_commit_is_found(excuse: str | None, tmp_path: Path) -> None:
    """Only commits before the assignment count; the member resumes from the last of these."""
    tables = healthy()
    at_ns = END_NS + 60 * S
    if excuse == "committed lower":
        add_commit(tables, "g1", 3, 10, at_ns, "info")
    add_assignment(tables, "g2", 4, at_ns + S)
    tables["clients"].append(tables["clients"][-1] | {"client": "g2"})
    again = next(row for row in tables["reads"] if row["client"] == "g1")
    read = {"client": "g2", "generation": 4, "read_ns": at_ns + 3 * S, "pass": 1, "poll": 1}
    tables["reads"].append(again | read)
    if excuse and "sought" in excuse:
        seek = {"client": "g2", "poll": 1, "event": "seek", "position_before": None}
        seek["complete_ns"] = at_ns + (0 if "before" in excuse else 3 * S)
        every_partition = {"topic_id": None, "partition": None} if "every" in excuse else {}
        tables["polls"].append(tables["polls"][-1] | seek | every_partition)
    result = judge_groups(tmp_path, tables)
    assert_only(result, *(["commit_went_back"] if excuse in (None, "sought before") else []))
    for finding in result["commit_went_back"].findings:
        assert (finding.sub_kind, finding.offset) == ("resumed", HALF)
        assert f"continued from {HALF}, though {ONE.records} had been" in finding.sentence


def test_uncommitted_position_violates_the_register_alone(tmp_path: Path) -> None:
    tables = healthy()
    add_commit_read(tables, ONE.records + 5, END_NS)
    assert_only(judge_groups(tmp_path, tables), "commit_register")


def add_coordinator_terms(tables: Tables, until_ns: int) -> None:
    """Broker 1 leads the offsets topic until `until_ns`, then broker 2."""
    for number, (leader, at_ns) in enumerate(((1, CRASH_NS - 10 * S), (2, until_ns))):
        tables["states"].append(
            {"run": "r", "zxid": 9000 + number, "at_ns": at_ns, "version": number}
            | {"path": "/brokers/topics/__consumer_offsets/partitions/0/state"}
            | {"topic_id": "offsets", "topic": "__consumer_offsets", "partition": 0}
            | {"leader": leader, "leader_epoch": number, "controller_epoch": 1}
            | {"isr": "[1, 2, 3]", "replicas": "[1, 2, 3]"}
        )


def test_paused_coordinator_may_return_its_last_state(tmp_path: Path) -> None:
    """Broker 1 led the offsets topic, was paused, and continued after broker 2 had taken over."""
    for fault, status in (("pause", Status.PERMITTED), ("crash", Status.VIOLATED)):
        tables = healthy()
        tables["faults"][0]["fault"] = fault
        add_coordinator_terms(tables, CRASH_NS + S)
        add_commit_read(tables, 50, CRASH_NS + 6 * S)
        result = judge_groups(tmp_path / fault, tables)
        assert result["commit_went_back"].status is status


@pytest.mark.parametrize(
    ("fault", "until_ns", "status"),
    [
        ("crash", CRASH_NS + 3 * S, Status.VIOLATED),  # dead when its term ended
        ("pause", CRASH_NS + 3 * S, Status.PERMITTED),
        ("crash", CRASH_NS + 7 * S, Status.PERMITTED),  # it may have been back by then
        ("crash", CRASH_NS - S, Status.PERMITTED),  # the term may have ended for another reason
    ],
)
def test_killed_coordinator_returns_without_its_groups(
    tmp_path: Path, fault: str, until_ns: int, status: Status
) -> None:
    """Broker 1 has restarted, and is cut off, when the committed offset is read."""
    tables = healthy()
    restart_ns = tables["faults"][0]["end_ns"]
    tables["faults"][0]["fault"] = fault
    partition = {"fault": "partition", "targets": '["b1->b2"]', "begin_ns": restart_ns}
    times = {"end_ns": restart_ns + 4 * S, "healed_ns": restart_ns + 4 * S}
    tables["faults"].append(tables["faults"][0] | partition | times)
    add_coordinator_terms(tables, until_ns)
    add_commit_read(tables, 50, restart_ns + S)
    assert judge_groups(tmp_path, tables)["commit_went_back"].status is status


def test_deleted_topic_loses_its_committed_offsets(tmp_path: Path) -> None:
    tables = healthy()
    last = max(row["zxid"] for row in tables["states"])
    tables["states"].append(
        tables["states"][-1]
        | {"zxid": last + 1, "version": -1, "at_ns": END_NS - S}
        | {"leader": None, "leader_epoch": None, "isr": None}
    )
    add_commit_read(tables, None, END_NS)
    assert_only(judge_groups(tmp_path, tables))


def test_coordinating_partition_equals_that_of_kafka() -> None:
    from urteil.harness.verify.derived.coordinators import coordinating_partition

    assert coordinating_partition("urteil-group", 50) == abs(_java_hash("urteil-group")) % 50
    assert coordinating_partition("polygenelubricants", 50) == 0  # hashes to MIN_VALUE


def _java_hash(text: str) -> int:
    value = 0
    for character in text:
        value = (31 * value + ord(character)) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def test_healthy_run_has_commits_of_both_members() -> None:
    assert {row["client"] for row in example_runs.healthy()["commits"]} == {"g0", "g1"}
