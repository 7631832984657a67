"""A new coordinator keeps the members of its groups for at least one session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.harness.verify.example_runs import Tables
from tests.harness.verify.guarantees.availability.test_no_delivery import (
    LED_NS,
    PLACE,
    SESSION,
    fault,
    judged,
    waiting,
)
from tests.harness.verify.guarantees.groups.test_group_guarantees import add_coordinator_terms
from urteil.harness.verify.synthetic import S

TAKEOVER_NS = LED_NS + 30 * S


def _taken_over(lost_s: float, given_s: float = -20, **client: Any) -> Tables:
    """Broker 1 coordinates a group and dies. Broker 2 takes over and evicts a member after these
    seconds."""
    tables = waiting(**client)
    add_coordinator_terms(tables, TAKEOVER_NS)
    fields = SESSION | PLACE | {"group": "late", "generation": 1, "member_id": "g9"}
    tables["assignments"] += [
        fields | {"event": event, "at_ns": TAKEOVER_NS + int(at_s * S)}
        for event, at_s in (("assigned", given_s), ("lost", lost_s))
    ]
    tables["faults"].append(fault("crash", "b1", TAKEOVER_NS - 3 * S, TAKEOVER_NS + 5 * S))
    return tables


def _put_out(run_dir: Path, tables: Tables) -> list[str]:
    result = judged(run_dir, tables, "member_expelled")
    return [
        finding.sentence for finding in result.findings if finding.sub_kind == "put out at takeover"
    ]


@pytest.mark.parametrize(
    ("lost_s", "given_s", "expected"), [(1, -20, 1), (4, -20, 0), (-1, -20, 0), (1, -4, 0)]
)
def test_member_that_loses_its_partition_without_cause_is_found(
    lost_s: float, given_s: float, expected: int, tmp_path: Path
) -> None:
    """The session timeout is six seconds, with a tolerance of three. The member had its partition
    for five seconds."""
    assert len(_put_out(tmp_path, _taken_over(lost_s, given_s))) == expected


def test_the_sentence_names_the_new_coordinator(tmp_path: Path) -> None:
    assert _put_out(tmp_path, _taken_over(1)) == [
        "g9 was removed from its group 1.0 s after broker 2 became its coordinator, sooner than "
        "its session timeout."
    ]


@pytest.mark.parametrize("name", ["partition", "disk_emptied", "kill_client"])
def test_other_faults_may_cost_a_member_its_place(name: str, tmp_path: Path) -> None:
    tables = _taken_over(1)
    tables["faults"].append(fault(name, "b2", TAKEOVER_NS - 10 * S, TAKEOVER_NS))
    assert not _put_out(tmp_path, tables)


def test_disturbed_group_yields_no_finding(tmp_path: Path) -> None:
    assert not _put_out(tmp_path / "static", _taken_over(1, instance="i9"))
    joined = _taken_over(1)
    mate = {"client": "g8", "begin_ns": TAKEOVER_NS - S}
    joined["clients"].append(joined["clients"][-1] | mate)
    assert not _put_out(tmp_path / "joined", joined)
    slept = _taken_over(1)
    slept["polls"] = [row for row in slept["polls"] if row["client"] != "g9"]
    assert not _put_out(tmp_path / "slept", slept)
    unclean = _taken_over(1)
    unclean["states"][-2]["isr"] = "[1, 3]"
    assert not _put_out(tmp_path / "unclean", unclean)
