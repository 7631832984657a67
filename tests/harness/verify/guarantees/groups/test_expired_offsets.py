"""Committed positions expire after their retention (KIP-211), and not before."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.harness.verify.guarantees.groups.test_group_guarantees import (
    ONE,
    add_assignment,
    add_commit,
    add_commit_read,
    assert_only,
    healthy,
    judge_groups,
)
from urteil.harness.scenario import Scenario
from urteil.harness.verify import synthetic
from urteil.harness.verify.synthetic import END_NS, S


def keeping(minutes: str | None) -> Scenario:
    scenario = synthetic.scenario(ONE)
    config = {"offsets.retention.minutes": minutes} if minutes else {}
    cluster = msgspec.structs.replace(scenario.cluster, config=scenario.cluster.config | config)
    return msgspec.structs.replace(scenario, cluster=cluster)


@pytest.mark.parametrize(
    ("minutes", "after_s", "broken"),
    [("1", 120, False), ("1", 30, True), (None, 7200, True), (None, 8 * 86_400, False)],
)
def test_expired_position_is_not_returned(
    minutes: str | None, after_s: int, broken: bool, tmp_path: Path
) -> None:
    tables = healthy()
    add_commit_read(tables, None, END_NS + after_s * S)
    names = ("commit_went_back", "commit_register") if broken else ()
    assert_only(judge_groups(tmp_path, tables, scenario=keeping(minutes)), *names)


def test_returned_position_did_not_expire(tmp_path: Path) -> None:
    tables = healthy()
    add_commit_read(tables, 50, END_NS + 120 * S)
    result = judge_groups(tmp_path, tables, scenario=keeping("1"))
    assert_only(result, "commit_went_back", "commit_register")


@pytest.mark.parametrize(("offset", "broken"), [(400, False), (None, True), (50, True)])
def test_a_commit_after_a_long_silence_keeps_the_position(
    offset: int | None, broken: bool, tmp_path: Path
) -> None:
    tables = healthy()
    add_commit(tables, "g1", 3, 400, END_NS + 200 * S)
    add_commit_read(tables, None, END_NS + 199 * S)
    add_commit_read(tables, offset, END_NS + 201 * S)
    names = ("commit_went_back", "commit_register") if broken else ()
    assert_only(judge_groups(tmp_path, tables, scenario=keeping("1")), *names)


def test_position_does_not_expire_while_its_group_has_members(tmp_path: Path) -> None:
    tables = healthy()
    add_assignment(tables, "g1", 4, END_NS + 80 * S)
    add_commit_read(tables, None, END_NS + 120 * S)
    result = judge_groups(tmp_path, tables, scenario=keeping("1"))
    assert_only(result, "commit_went_back", "commit_register")
