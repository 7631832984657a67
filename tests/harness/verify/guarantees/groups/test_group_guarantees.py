"""Permitted behaviour of a group is no finding; each violation is found with its record."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.harness.verify import made_up_runs
from tests.harness.verify.made_up_runs import Tables
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
    return made_up_runs.healthy(ONE)


def judged(run_dir: Path, tables: Tables, *, scenario: Scenario | None = None) -> Judged:
    """What the group's guarantees say of a run with these tables."""
    return judge(run_dir, tables, scenario or synthetic.scenario(ONE), synthetic.facts(ONE), GROUPS)


def judge(
    run_dir: Path, tables: Tables, asked: Scenario, reported: RunFacts, names: tuple[str, ...]
) -> Judged:
    """What some guarantees say of a run with these tables."""
    synthetic.write_run(run_dir, tables, asked, reported)
    derived = judgement.prepare(run_dir, asked, reported)
    engine = SharedDuck(run_dir / "work")
    try:
        open_views(engine, run_dir, derived)
        shared_tables.build(engine)
        present = {name for name in SCHEMAS if tables.get(name)}
        return {name: check(engine, GUARANTEES[name], Places(derived), present) for name in names}
    finally:
        engine.close()


def add(tables: Tables, table: str, client: str, generation: int | None, **columns: Any) -> None:
    who = {"client": client, "session": 0, "generation": generation, "member_id": client}
    tables[table].append(PLACE | who | columns)


def commit(tables: Tables, client: str, generation: int | None, offset: int, at_ns: int,
           outcome: str = "ok", error: str | None = None) -> None:  # fmt: skip
    end_ns = None if outcome == "info" else at_ns + 1000
    add(tables, "commits", client, generation, offset=offset, outcome=outcome, error=error,
        invoke_ns=at_ns, complete_ns=end_ns, processed_to=offset)  # fmt: skip


def answer(tables: Tables, offset: int | None, at_ns: int, client: str = "o1") -> None:
    add(tables, "commit_reads", client, None, offset=offset, outcome="ok",
        invoke_ns=at_ns, complete_ns=at_ns + 1000)  # fmt: skip


def assigned(tables: Tables, client: str, generation: int, at_ns: int, event: str = "assigned"
             ) -> None:  # fmt: skip
    add(tables, "assignments", client, generation, event=event, at_ns=at_ns)


def assert_only(result: Judged, *broken: str) -> None:
    violated = {name for name, one in result.items() if one.status is Status.VIOLATED}
    assert violated == set(broken), [(n, result[n].reason, result[n].findings) for n in GROUPS]


def test_group_that_hands_over_partitions_has_no_finding(tmp_path: Path) -> None:
    result = judged(tmp_path, healthy())
    assert {one.status for one in result.values()} == {Status.HOLDS}


@pytest.mark.parametrize("outcome", ["ok", "info", "fail"])
def test_commit_beyond_the_end_is_a_violation(outcome: str, tmp_path: Path) -> None:
    tables = healthy()
    last = max(tables["commits"], key=lambda row: int(row["offset"]))
    late_ns = last["invoke_ns"] + 1_000_000
    commit(tables, last["client"], last["generation"], 400, late_ns, outcome)
    commit(tables, last["client"], last["generation"], 401, late_ns + 2000, outcome)
    broken = judged(tmp_path, tables)["commit_beyond_processed"]
    found = [one.sentence for one in broken.findings if one.sub_kind == "beyond the end"]
    expected = f"committed urteil-0@401 for {last['group']}, though the partition ends at 400."
    assert found == ([f"{last['client']} {expected}"] if outcome == "ok" else [])


def test_without_a_group_nothing_is_judged(tmp_path: Path) -> None:
    tables = healthy()
    for name in ("commits", "commit_reads", "assignments"):
        del tables[name]
    result = judged(tmp_path, tables)
    assert {one.status for one in result.values()} == {Status.NOT_JUDGED}


def test_healthy_groups_have_no_finding(tmp_path: Path) -> None:
    """Rebalances of both kinds, dead members, repeated and unknown commits, polled positions."""
    tables = healthy()
    end = END_NS + 100 * S
    assigned(tables, "g1", 3, end)  # eager: the same member again
    commit(tables, "g1", 4, ONE.records, end + S)  # cooperative: kept, and shown by a commit alone
    assigned(tables, "g1", 5, end + 2 * S, "revoked")
    assigned(tables, "g2", 5, end + 3 * S)
    commit(tables, "g1", 4, 10, end + 3 * S, "info")  # a zombie of which nobody knows
    answer(tables, 10, end + 5 * S)  # ... and that took effect
    answer(tables, ONE.records, end + 5 * S + 100)  # asked at once, before it did
    commit(tables, "g2", 5, 20, end + 7 * S, error="2 attempts")
    commit(tables, "g2", 5, 30, end + 8 * S)
    answer(tables, 20, end + 9 * S)  # the first attempt came late
    commit(tables, "g2", None, 40, end + 10 * S, "info")  # a client without a generation
    commit(tables, "g1", 4, 5, end + 11 * S, "fail")
    assert_only(judged(tmp_path, tables))


def test_a_member_that_died_before_it_processed_did_not_commit(tmp_path: Path) -> None:
    tables = healthy()
    tables["commits"] = [row for row in tables["commits"] if row["offset"] <= HALF - 50]
    tables["commit_reads"][1]["offset"] = HALF - 50
    tables["reads"] = [
        row for row in tables["reads"]
        if row["client"] not in ("g0", "g1") or row["offset"] < HALF - 50
    ]  # fmt: skip
    assert_only(judged(tmp_path, tables))


def test_recreated_group_counts_generations_from_one(tmp_path: Path) -> None:
    tables = healthy()
    assigned(tables, "g0", 1, END_NS + 100 * S)
    commit(tables, "g0", 1, ONE.records, END_NS + 101 * S)
    assert judged(tmp_path, tables)["zombie_commit"].status is not Status.VIOLATED


def test_two_members_in_one_generation(tmp_path: Path) -> None:
    tables = healthy()
    assigned(tables, "g0", 2, LED_NS + S)
    result = judged(tmp_path, tables)
    assert_only(result, "two_owners")
    (finding,) = result["two_owners"].findings
    assert "g0 and g1" in finding.sentence
    assert "generation 2" in finding.sentence


def test_member_that_keeps_its_partition_cooperatively_is_no_second_owner(tmp_path: Path) -> None:
    tables = healthy()
    commit(tables, "g0", 2, 10, LED_NS + S)
    commit(tables, "g1", 2, ONE.records, LED_NS + 2 * S)
    assert_only(judged(tmp_path, tables), "two_owners")


def given(tables: Tables, *member_ids: str) -> None:
    """What leaders of generation 2 gave to these, one after the other."""
    for number, member_id in enumerate(member_ids):
        assigned(tables, f"leader{number}", 2, LED_NS - 2 * S, "given")
        tables["assignments"][-1]["member_id"] = member_id


@pytest.mark.parametrize(
    ("member_ids", "broken"),
    [((), []), (("m1",), []), (("m0", "m1"), []), (("m0",), ["two_owners"])],
)
def test_member_receives_the_assignment_of_its_leader(
    member_ids: tuple[str, ...], broken: list[str], tmp_path: Path
) -> None:
    """A generation that was not stored may be begun again by another leader."""
    tables = healthy()
    given(tables, *member_ids)
    result = judged(tmp_path, tables)
    assert_only(result, *broken)
    for finding in result["two_owners"].findings:
        assert finding.sub_kind == "of another"
        assert "g1 was given" in finding.sentence
        assert "which its leader, leader0, had given" in finding.sentence


def test_static_member_may_return_with_another_member_id(tmp_path: Path) -> None:
    tables = healthy()
    given(tables, "m0")
    for row in tables["clients"]:
        row["instance"] = "static-g1" if row["client"] == "g1" else None
    assert_only(judged(tmp_path, tables))


def static(tables: Tables) -> int:
    """`s1` and its next session `s1.2` are one static member, and had one partition in turn."""
    at_ns = END_NS + 60 * S
    for session, client in enumerate(("s1", "s1.2"), 1):
        fields = {"run": "r", "client": client, "session": session, "group": "static"}
        tables["clients"].append(fields | {"kind": "made up", "instance": "static-s1"})
        assigned(tables, client, 1, at_ns + session * S)
        tables["assignments"][-1] |= {"session": session, "group": "static"}
    return at_ns + 3 * S


def static_commit(tables: Tables, client: str, session: int, at_ns: int, outcome: str,
                  generation: int = 1) -> None:  # fmt: skip
    commit(tables, client, generation, 0, at_ns, outcome)
    tables["commits"][-1] |= {"session": session, "group": "static"}


def test_sessions_of_a_static_member_are_one_owner(tmp_path: Path) -> None:
    tables = healthy()
    at_ns = static(tables)
    static_commit(tables, "s1", 1, at_ns, "fail")
    static_commit(tables, "s1.2", 2, at_ns, "ok")
    assert_only(judged(tmp_path, tables))


def test_a_static_member_that_was_replaced_commits(tmp_path: Path) -> None:
    tables = healthy()
    static_commit(tables, "s1", 1, static(tables), "ok")
    result = judged(tmp_path, tables)
    assert_only(result, "zombie_commit")
    (finding,) = result["zombie_commit"].findings
    assert (finding.sub_kind, finding.offset) == ("replaced", 0)
    assert "s1.2 had taken its place" in finding.sentence


def test_another_client_takes_a_static_members_place(tmp_path: Path) -> None:
    """Each of them in its first session."""
    tables = healthy()
    at_ns = static(tables)
    for row in (*tables["clients"], *tables["assignments"]):
        row["session"] = 0 if row.get("group") == "static" else row["session"]
    static_commit(tables, "s1.2", 0, at_ns, "ok")
    assert_only(judged(tmp_path / "its own", tables))
    static_commit(tables, "s1", 0, at_ns, "ok")
    result = judged(tmp_path, tables)
    assert [one.sub_kind for one in result["zombie_commit"].findings] == ["replaced"]


def test_a_static_member_that_takes_its_place_back_may_commit(tmp_path: Path) -> None:
    tables = healthy()
    at_ns = static(tables)
    assigned(tables, "s1", 2, at_ns)
    tables["assignments"][-1] |= {"session": 1, "group": "static"}
    static_commit(tables, "s1", 1, at_ns + S, "ok", generation=2)
    assert judged(tmp_path, tables)["zombie_commit"].status is not Status.VIOLATED


def test_position_without_its_transactions_records_is_found(tmp_path: Path) -> None:
    tables = healthy()
    top = max(row["offset"] for row in tables["commits"])
    for number, intact in enumerate((None, True)):
        answer(tables, top, END_NS + (60 + number) * S)
        tables["commit_reads"][-1]["intact"] = intact
    assert_only(judged(tmp_path / "noted", tables))
    tables["commit_reads"][-1]["intact"] = False
    (finding,) = judged(tmp_path / "lost", tables)["commit_register"].findings
    assert (finding.sub_kind, finding.offset) == ("note", top)


def test_decreasing_generation_is_a_violation(tmp_path: Path) -> None:
    """One member's own: what another hears late of a generation that is over, is none."""
    tables = healthy()
    assigned(tables, "g2", 2, END_NS + 60 * S)
    assigned(tables, "g2", 4, END_NS + 61 * S)
    assert judged(tmp_path / "another", tables)["generation_went_back"].status is Status.HOLDS
    assigned(tables, "g1", 1, END_NS + 62 * S)
    (finding,) = judged(tmp_path / "own", tables)["generation_went_back"].findings
    assert "g1 was in generation 3 of group" in finding.sentence
    assert (finding.records[0]["generation"], finding.records[0]["before"]) == (1, 3)


def test_partitions_forgotten_by_their_coordinator_are_found(tmp_path: Path) -> None:
    tables = healthy()
    assigned(tables, "g1", 3, END_NS + 60 * S)
    tables["assignments"][-1]["event"] = "kept"
    assert judged(tmp_path / "kept", tables)["generation_went_back"].status is Status.HOLDS
    tables["assignments"][-1]["event"] = "forgotten"
    (finding,) = judged(tmp_path / "gone", tables)["generation_went_back"].findings
    assert finding.sub_kind == "forgotten"
    assert "assigned itself a partition in generation 3" in finding.sentence


def test_accepted_commit_of_a_zombie_is_found(tmp_path: Path) -> None:
    tables = healthy()
    commit(tables, "g0", 1, 7, END_NS)
    result = judged(tmp_path, tables)
    assert_only(result, "zombie_commit")
    (finding,) = result["zombie_commit"].findings
    assert (finding.offset, finding.records[0]["next_generation"]) == (7, 2)


def test_zombie_of_a_generation_without_assignment_is_found(tmp_path: Path) -> None:
    """A cooperative member keeps what it has, and generation 4 revokes it;
    if the group has begun anew since, a generation 4 may follow generation 5."""
    tables = healthy()
    end = END_NS + 100 * S
    assigned(tables, "g1", 4, end, "revoked")
    assigned(tables, "g2", 5, end + S)
    commit(tables, "g1", 4, 7, end + 2 * S)
    (finding,) = judged(tmp_path, tables)["zombie_commit"].findings
    assert (finding.offset, finding.records[0]["next_generation"]) == (7, 5)
    assigned(tables, "g1", 1, end + 2 * S - 1)
    assert judged(tmp_path / "anew", tables)["zombie_commit"].status is not Status.VIOLATED


def test_unprocessed_record_is_found(tmp_path: Path) -> None:
    tables = healthy()
    tables["reads"] = [
        row for row in tables["reads"] if not (row["client"] == "g1" and row["offset"] == 300)
    ]
    result = judged(tmp_path, tables)
    (finding,) = result["commit_beyond_processed"].findings
    assert finding.offset == 300


def test_reads_of_another_group_do_not_count_as_processed(tmp_path: Path) -> None:
    """Members are known by what they were assigned, whatever their kind is called."""
    tables = healthy()
    for row in tables["clients"]:
        row |= {"kind": "consumer", "group": None} if row["client"] == "g1" else {}
    assert_only(judged(tmp_path / "healthy", tables))
    for row in tables["reads"]:
        if row["client"] == "g1" and row["offset"] == 300:
            row["client"] = "elsewhere"
    model = next(row for row in tables["clients"] if row["client"] == "g1")
    tables["clients"].append(model | {"client": "elsewhere", "kind": "group", "group": "other"})
    (finding,) = judged(tmp_path / "other", tables)["commit_beyond_processed"].findings
    assert finding.offset == 300


def test_group_that_commits_before_processing_may_lose_records(tmp_path: Path) -> None:
    tables = healthy()
    tables["reads"] = [
        row for row in tables["reads"] if not (row["client"] == "g1" and row["offset"] == 300)
    ]
    asked = synthetic.scenario(ONE)
    load = msgspec.structs.replace(asked.workload, options={"commit": "before"})
    asked = msgspec.structs.replace(asked, workload=load)
    result = judged(tmp_path, tables, scenario=asked)
    assert result["commit_beyond_processed"].status is Status.PERMITTED


@pytest.mark.parametrize("reported", [None, 50])
def test_decreasing_position_is_found(tmp_path: Path, reported: int | None) -> None:
    tables = healthy()
    answer(tables, reported, END_NS)
    result = judged(tmp_path, tables)
    assert_only(result, "commit_went_back", "commit_register")
    assert f"{ONE.records} had been" in result["commit_went_back"].findings[0].sentence


@pytest.mark.parametrize(
    "excuse", [None, "sought", "sought everywhere", "sought before", "committed lower"]
)
def test_member_that_resumes_below_its_commit_is_found(excuse: str | None, tmp_path: Path) -> None:
    """Before it was given the partition: redelivered is what nobody had committed."""
    tables = healthy()
    at_ns = END_NS + 60 * S
    if excuse == "committed lower":
        commit(tables, "g1", 3, 10, at_ns, "info")
    assigned(tables, "g2", 4, at_ns + S)
    tables["clients"].append(tables["clients"][-1] | {"client": "g2"})
    again = next(row for row in tables["reads"] if row["client"] == "g1")
    read = {"client": "g2", "generation": 4, "read_ns": at_ns + 3 * S, "pass": 1, "poll": 1}
    tables["reads"].append(again | read)
    if excuse and "sought" in excuse:
        moved = {"client": "g2", "poll": 1, "event": "seek", "position_before": None}
        moved["complete_ns"] = at_ns + (0 if "before" in excuse else 3 * S)
        all_of_them = {"topic_id": None, "partition": None} if "every" in excuse else {}
        tables["polls"].append(tables["polls"][-1] | moved | all_of_them)
    result = judged(tmp_path, tables)
    assert_only(result, *(["commit_went_back"] if excuse in (None, "sought before") else []))
    for finding in result["commit_went_back"].findings:
        assert (finding.sub_kind, finding.offset) == ("resumed", HALF)
        assert f"read on from {HALF}, though {ONE.records} had been" in finding.sentence


def test_uncommitted_position_violates_the_register_alone(tmp_path: Path) -> None:
    tables = healthy()
    answer(tables, ONE.records + 5, END_NS)
    assert_only(judged(tmp_path, tables), "commit_register")


def offices(tables: Tables, until_ns: int) -> None:
    """Broker 1 led the offsets topic until then, broker 2 does since."""
    for number, (leader, at_ns) in enumerate(((1, CRASH_NS - 10 * S), (2, until_ns))):
        tables["states"].append(
            {"run": "r", "zxid": 9000 + number, "at_ns": at_ns, "version": number}
            | {"path": "/brokers/topics/__consumer_offsets/partitions/0/state"}
            | {"topic_id": "offsets", "topic": "__consumer_offsets", "partition": 0}
            | {"leader": leader, "leader_epoch": number, "controller_epoch": 1}
            | {"isr": "[1, 2, 3]", "replicas": "[1, 2, 3]"}
        )


def test_isolated_coordinator_may_answer_its_last_state(tmp_path: Path) -> None:
    """Broker 1 led the offsets topic, was paused, and woke up when broker 2 had taken over."""
    for fault, status in (("pause", Status.PERMITTED), ("crash", Status.VIOLATED)):
        tables = healthy()
        tables["faults"][0]["fault"] = fault
        offices(tables, CRASH_NS + S)
        answer(tables, 50, CRASH_NS + 6 * S)
        result = judged(tmp_path / fault, tables)
        assert result["commit_went_back"].status is status


@pytest.mark.parametrize(
    ("fault", "until_ns", "status"),
    [
        ("crash", CRASH_NS + 3 * S, Status.VIOLATED),  # dead when its office ended
        ("pause", CRASH_NS + 3 * S, Status.PERMITTED),
        ("crash", CRASH_NS + 7 * S, Status.PERMITTED),  # it may have been back by then
        ("crash", CRASH_NS - S, Status.PERMITTED),  # nor is it known that it died of it
    ],
)
def test_killed_coordinator_returns_without_its_groups(
    tmp_path: Path, fault: str, until_ns: int, status: Status
) -> None:
    """Broker 1 is back, and cut off, when somebody asks."""
    tables = healthy()
    back_ns = tables["faults"][0]["end_ns"]
    tables["faults"][0]["fault"] = fault
    cut = {"fault": "partition", "targets": '["b1->b2"]', "begin_ns": back_ns}
    times = {"end_ns": back_ns + 4 * S, "healed_ns": back_ns + 4 * S}
    tables["faults"].append(tables["faults"][0] | cut | times)
    offices(tables, until_ns)
    answer(tables, 50, back_ns + S)
    assert judged(tmp_path, tables)["commit_went_back"].status is status


def test_positions_go_with_a_topic_that_is_deleted(tmp_path: Path) -> None:
    tables = healthy()
    last = max(row["zxid"] for row in tables["states"])
    tables["states"].append(
        tables["states"][-1]
        | {"zxid": last + 1, "version": -1, "at_ns": END_NS - S}
        | {"leader": None, "leader_epoch": None, "isr": None}
    )
    answer(tables, None, END_NS)
    assert_only(judged(tmp_path, tables))


def test_coordinators_are_found_as_kafka_finds_them() -> None:
    from urteil.harness.verify.derived.coordinators import coordinating_partition

    assert coordinating_partition("urteil-group", 50) == abs(_java_hash("urteil-group")) % 50
    assert coordinating_partition("polygenelubricants", 50) == 0  # hashes to MIN_VALUE


def _java_hash(text: str) -> int:
    value = 0
    for character in text:
        value = (31 * value + ord(character)) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def test_made_up_groups_are_whole() -> None:
    assert {row["client"] for row in made_up_runs.healthy()["commits"]} == {"g0", "g1"}
