"""Groups of the protocol `consumer`: members have epochs, and own partitions at times."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.harness.verify.example_runs import Tables
from tests.harness.verify.guarantees.groups import test_group_guarantees as groups
from urteil.harness.verify import synthetic
from urteil.harness.verify.result import GuaranteeResult, Status
from urteil.harness.verify.synthetic import END_NS, S

AT_NS = END_NS + 60 * S
NAMES = (*groups.GROUPS, "overlapping_owners")


def _healthy() -> Tables:
    """The healthy group with epochs of its members instead of generations."""
    tables = groups.healthy()
    for name in ("assignments", "commits"):
        for row in tables[name]:
            row |= {"member_epoch": row["generation"], "generation": None}
    return tables


def _add_assignment(
    tables: Tables, client: str, epoch: int | None, at_ns: int, event: str = "assigned"
) -> None:
    groups.add(tables, "assignments", client, None, member_epoch=epoch, event=event, at_ns=at_ns)


def _add_commit(
    tables: Tables, client: str, epoch: int, at_ns: int, outcome: str = "ok", **columns: Any
) -> None:
    groups.add_commit(tables, client, None, groups.ONE.records, at_ns, outcome)
    tables["commits"][-1] |= {"member_epoch": epoch, **columns}


def _judge(tmp_path: Path, tables: Tables) -> dict[str, GuaranteeResult]:
    scenario, facts = synthetic.scenario(groups.ONE), synthetic.facts(groups.ONE)
    return groups.judge(tmp_path, tables, scenario, facts, NAMES)


def _broken(tmp_path: Path, tables: Tables) -> list[tuple[str, str, str]]:
    return [
        (name, finding.sub_kind, finding.sentence)
        for name, result in _judge(tmp_path, tables).items()
        for finding in result.findings
        if result.status is Status.VIOLATED
    ]


def test_partition_that_is_handed_over_has_one_owner(tmp_path: Path) -> None:
    result = _judge(tmp_path, _healthy())
    holds = {name for name, outcome in result.items() if outcome.status is Status.HOLDS}
    assert {"overlapping_owners", "generation_went_back"} <= holds
    assert result["two_owners"].status is Status.NOT_JUDGED
    assert not [name for name, outcome in result.items() if outcome.status is Status.VIOLATED]


@pytest.mark.parametrize("outcome", ["ok", "fail", "info"])
def test_simultaneous_commits_of_two_members_in_a_partition_are_found(
    outcome: str, tmp_path: Path
) -> None:
    """Without an accepted commit a member may have stood still, and have been replaced."""
    tables = _healthy()
    _add_assignment(tables, "g2", 7, AT_NS)
    _add_assignment(tables, "g3", 8, AT_NS + S)
    _add_commit(tables, "g3", 8, AT_NS + 2 * S)
    _add_commit(tables, "g2", 7, AT_NS + 3 * S, outcome)
    expected = (
        "g3 was assigned urteil-0 of group in member epoch 8, and the coordinator accepted its "
        "commits, while g2 owned the partition and committed in it."
    )
    broken = [("overlapping_owners", "at once", expected)]
    assert _broken(tmp_path, tables) == (broken if outcome == "ok" else [])


@pytest.mark.parametrize("event", ["revoked", "lost"])
def test_member_that_gave_a_partition_back_is_no_owner(event: str, tmp_path: Path) -> None:
    """Its commits of the time before, and after another assignment, are no overlap."""
    tables = _healthy()
    _add_assignment(tables, "g2", 7, AT_NS)
    _add_commit(tables, "g2", 7, AT_NS + S)
    _add_assignment(tables, "g2", None, AT_NS + 2 * S, event)
    _add_assignment(tables, "g3", 8, AT_NS + 3 * S)
    _add_commit(tables, "g3", 8, AT_NS + 4 * S)
    _add_assignment(tables, "g3", None, AT_NS + 5 * S, event)
    _add_assignment(tables, "g2", 9, AT_NS + 6 * S)
    _add_commit(tables, "g2", 9, AT_NS + 7 * S)
    assert _broken(tmp_path, tables) == []


def test_late_callback_of_a_replaced_member_is_no_overlap(tmp_path: Path) -> None:
    """It learns of its assignment after it stood still, and none of its commits is accepted."""
    tables = _healthy()
    _add_assignment(tables, "g3", 8, AT_NS)
    _add_assignment(tables, "g2", 7, AT_NS + S)
    _add_commit(tables, "g2", 7, AT_NS + 2 * S, "fail")
    _add_commit(tables, "g3", 8, AT_NS + 3 * S)
    assert _broken(tmp_path, tables) == []


@pytest.mark.parametrize(
    ("shows", "epoch", "invoke_s", "broken"),
    [
        ("assigned", 7, 3, True),
        ("committed", 7, 3, True),
        ("assigned", 8, 3, False),
        ("assigned", 7, 1, False),  # before the later epoch
    ],
)
def test_accepted_commit_in_an_ended_epoch_is_found(
    shows: str, epoch: int, invoke_s: int, broken: bool, tmp_path: Path
) -> None:
    tables = _healthy()
    _add_assignment(tables, "g2", 7, AT_NS)
    if shows == "assigned":
        _add_assignment(tables, "g2", 8, AT_NS + 2 * S)
    else:
        _add_commit(tables, "g2", 8, AT_NS + 2 * S)
    _add_commit(tables, "g2", epoch, AT_NS + invoke_s * S)
    expected = (
        "g2 committed urteil-0@400 for group in member epoch 7 and was acknowledged, though it "
        "was in epoch 8 already."
    )
    found = [("zombie_commit", "stale epoch", expected)]
    assert _broken(tmp_path, tables) == (found if broken else [])


def test_members_have_different_epochs(tmp_path: Path) -> None:
    """A member that has nothing to give back is ahead of the others."""
    tables = _healthy()
    _add_assignment(tables, "g2", 7, AT_NS)
    _add_assignment(tables, "g3", 9, AT_NS + S)
    tables["assignments"][-1]["partition"] = 1
    _add_commit(tables, "g2", 7, AT_NS + 2 * S)
    assert _broken(tmp_path, tables) == []


def test_member_whose_epoch_began_anew_is_no_zombie(tmp_path: Path) -> None:
    tables = _healthy()
    for seconds, epoch in enumerate((7, 8, 7)):
        _add_assignment(tables, "g2", epoch, AT_NS + seconds * S)
    _add_commit(tables, "g2", 7, AT_NS + 3 * S)
    ((name, sub_kind, sentence),) = _broken(tmp_path, tables)
    assert (name, sub_kind) == ("generation_went_back", "fell")
    assert "g2 was in generation 8 of group" in sentence
