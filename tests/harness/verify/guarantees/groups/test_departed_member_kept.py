"""A group does not wait for a member that left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.harness.verify.example_runs import Tables
from tests.harness.verify.guarantees.availability.test_no_delivery import (
    LED_NS,
    OVER_NS,
    PLACE,
    SESSION,
    fault,
    judged,
    polled,
    waiting,
)
from urteil.harness.verify.synthetic import END_NS, S

LEFT_NS = LED_NS + 20 * S
MATE = {"client": "g8", "member_id": "g8"}


def _left(taken_s: float | None, **mate: Any) -> Tables:
    """A group of two. One member leaves, and the other is assigned its partition after these
    seconds."""
    tables = waiting(end_ns=LEFT_NS + S // 10)
    member = next(row for row in tables["clients"] if row["client"] == SESSION["client"])
    tables["clients"].append(member | {"client": "g8", "end_ns": OVER_NS} | mate)
    tables["polls"] += [polled(END_NS + n * S) | {"client": "g8"} for n in range(2, 80)]
    own = SESSION | PLACE | {"group": "late", "generation": 1, "member_id": "g9"}
    rows = [own | {"event": "assigned", "at_ns": LED_NS}]
    rows.append(own | {"event": "revoked", "at_ns": LEFT_NS})
    if taken_s is not None:
        taken = {"event": "assigned", "at_ns": LEFT_NS + int(taken_s * S), "generation": 2}
        rows.append(own | taken | MATE)
    tables["assignments"] += rows
    return tables


def _sub_kinds(run_dir: Path, tables: Tables, session_timeout_ms: str = "20000") -> list[str]:
    result = judged(run_dir, tables, "departed_member_kept", session_timeout_ms=session_timeout_ms)
    return [finding.sub_kind for finding in result.findings if finding.sub_kind == "left behind"]


@pytest.mark.parametrize(
    ("taken_s", "expected"), [(2, []), (9, []), (15, ["left behind"]), (None, ["left behind"])]
)
def test_partition_of_a_departed_member_is_taken_over(
    taken_s: float | None, expected: list[str], tmp_path: Path
) -> None:
    assert _sub_kinds(tmp_path, _left(taken_s)) == expected


def test_sentence_names_the_departed_member(tmp_path: Path) -> None:
    result = judged(tmp_path, _left(None), "departed_member_kept", session_timeout_ms="20000")
    sentences = [
        finding.sentence for finding in result.findings if finding.sub_kind == "left behind"
    ]
    assert sentences == [
        "g9 left its group, and for 10.0 s no member was assigned urteil-0, although others were "
        "running."
    ]


def test_short_sessions_or_no_members_yield_no_finding(tmp_path: Path) -> None:
    assert not _sub_kinds(tmp_path / "short", _left(None), session_timeout_ms="6000")
    assert not _sub_kinds(tmp_path / "alone", _left(None, end_ns=LEFT_NS + 5 * S))
    assert not _sub_kinds(tmp_path / "static", _left(None, instance="i8"))
    disturbed = _left(None)
    disturbed["faults"].append(fault("crash", "b1", LEFT_NS + S, LEFT_NS + 3 * S))
    assert not _sub_kinds(tmp_path / "fault", disturbed)
    killed = _left(None)
    killed["clients"][-2]["end_ns"] = OVER_NS  # it lost it in a rebalance, and lives
    assert not _sub_kinds(tmp_path / "lives", killed)


def test_abandoned_joins_do_not_disturb_the_group(tmp_path: Path) -> None:
    tables = _left(None)
    tables["faults"].append(fault("rebalance_storm", "group", LED_NS + S, LEFT_NS + 30 * S))
    assert _sub_kinds(tmp_path, tables) == ["left behind"]


def _killed(taken_s: float | None, given_ns: int = LED_NS) -> Tables:
    """A group of two. One member is killed, and the other is assigned its partition after these
    seconds."""
    tables = _left(taken_s)
    for row in tables["clients"]:
        if row["client"] == SESSION["client"]:
            row["end_ns"] = None
    tables["assignments"] = [row for row in tables["assignments"] if row["event"] != "revoked"]
    for row in tables["assignments"]:
        if row["client"] == SESSION["client"] and row["event"] == "assigned":
            row["at_ns"] = given_ns
    fields = {"invoke_ns": LEFT_NS - 1, "complete_ns": LEFT_NS, "outcome": "ok"}
    kill = {"act": "kill client", "subject": SESSION["client"], "before": None, "after": "{}"}
    tables["admin_ops"] = [{"run": "r"} | fields | kill]
    tables["faults"].append(fault("kill_client", "g9", LEFT_NS, LEFT_NS + 40 * S))
    return tables


def _kept(run_dir: Path, tables: Tables, session_timeout_ms: str = "6000") -> list[str]:
    result = judged(run_dir, tables, "departed_member_kept", session_timeout_ms=session_timeout_ms)
    return [finding.sentence for finding in result.findings if finding.sub_kind == "kept dead"]


@pytest.mark.parametrize(
    ("taken_s", "session_ms", "expected"),
    [(8, "6000", 0), (15, "6000", 1), (None, "6000", 1), (15, "10000", 0), (None, "20000", 1)],
)
def test_partition_of_a_killed_member_is_taken_over(
    taken_s: float | None, session_ms: str, expected: int, tmp_path: Path
) -> None:
    sentences = _kept(tmp_path, _killed(taken_s), session_ms)
    assert len(sentences) == expected
    assert all(sentence.startswith("g9 was killed, and for ") for sentence in sentences)


def test_death_during_another_fault_yields_no_finding(tmp_path: Path) -> None:
    assert not _kept(tmp_path / "rebalance", _killed(None, LEFT_NS - S))
    disturbed = _killed(None)
    disturbed["faults"].append(fault("rebalance_storm", "group", LEFT_NS + S, LEFT_NS + 3 * S))
    assert not _kept(tmp_path / "storm", disturbed)
    lonely = _killed(None)
    lonely["clients"][-1]["end_ns"] = LEFT_NS + 5 * S
    assert not _kept(tmp_path / "alone", lonely)
