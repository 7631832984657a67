"""Clients that break the protocol: positions that must not be returned or accepted, and epochs
that are assigned twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.harness.verify.example_runs import Tables
from tests.harness.verify.guarantees.groups import test_group_guarantees as groups
from tests.harness.verify.guarantees.transactions import transaction_evidence as transactions
from urteil.harness.verify.result import Status
from urteil.harness.verify.synthetic import END_NS, S

AT_NS = END_NS + 60 * S
ZOMBIE = "zombie1"


def _amid(outcome: str, asked_s: float) -> Tables:
    """A transaction of ten seconds with a position, and an answer of that time."""
    tables = transactions.transactional_tables()
    times = {"begin_ns": AT_NS, "commit_invoke_ns": AT_NS + 9 * S, "end_ns": AT_NS + 10 * S}
    txn = {"client": ZOMBIE, "txn": 1, "outcome": outcome, "transactional_id": "z"}
    tables["txns"].append(tables["txns"][0] | txn | times)
    groups.add_commit(tables, ZOMBIE, 3, 700, AT_NS + S, {"committed": "ok"}.get(outcome, "fail"))
    tables["commits"][-1] |= {"txn": 1, "complete_ns": AT_NS + 10 * S}
    groups.add_commit_read(tables, 400, AT_NS + int(asked_s * S), ZOMBIE)
    return tables


@pytest.mark.parametrize(
    ("outcome", "asked_s", "expected"),
    [
        ("committed", 3, ["unstable"]),
        ("committed", 0.5, []),
        ("committed", 9.5, []),  # its end was requested
        ("aborted", 3, []),  # by whomever
    ],
)
def test_position_pending_in_a_transaction_is_unstable(
    outcome: str, asked_s: float, expected: list[str], tmp_path: Path
) -> None:
    result = groups.judge_groups(tmp_path, _amid(outcome, asked_s))["commit_register"]
    values = [finding for finding in result.findings if finding.sub_kind == "unstable"]
    assert [value.sub_kind for value in values] == expected
    for value in values:
        assert "requested stable offsets and 700 was part of" in value.sentence


@pytest.mark.parametrize(
    ("outcome", "kept_s", "expected"),
    [("ok", 5, ["of nobody"]), ("fail", 5, []), ("ok", None, []), ("ok", 0.5, [])],
    ids=["taken", "refused", "the member may be gone", "before"],
)
def test_a_commit_without_a_generation_beside_a_member(
    outcome: str, kept_s: float | None, expected: list[str], tmp_path: Path
) -> None:
    tables = groups.healthy()
    times = [(AT_NS, "assigned")]
    times += [] if kept_s is None else [(AT_NS + int(kept_s * S), "kept")]
    for at_ns, event in times:
        groups.add_assignment(tables, ZOMBIE, 1, at_ns, event)
        tables["assignments"][-1]["group"] = "its own"
    groups.add_commit(tables, ZOMBIE, -1, 7, AT_NS + S, outcome)
    tables["commits"][-1]["group"] = "its own"
    result = groups.judge_groups(tmp_path, tables)["zombie_commit"]
    assert [finding.sub_kind for finding in result.findings] == expected
    for finding in result.findings:
        assert (
            "in no generation and was acknowledged, though the group had a member"
            in finding.sentence
        )


def _given(*epochs: tuple[float, int], **more: Any) -> Tables:
    """One producer after the other of one id, each initialised in a second."""
    tables = transactions.transactional_tables()
    for number, (at_s, epoch) in enumerate(epochs):
        at_ns = AT_NS + int(at_s * S)
        row = {"client": ZOMBIE, "transactional_id": "z", "txn": number, "outcome": "aborted"}
        row |= {"producer_id": 9, "epoch": epoch, "commit_invoke_ns": None}
        row |= {"init_invoke_ns": at_ns, "init_ns": at_ns + S, "begin_ns": at_ns + S}
        tables["txns"].append(tables["txns"][0] | row | {"end_ns": at_ns + S} | more)
    return tables


@pytest.mark.parametrize(
    ("epochs", "expected"),
    [
        ([(0, 1), (2, 2), (4, 3)], []),
        ([(0, 1), (2, 1)], ["same epoch"]),
        ([(0, 2), (2, 1), (4, 2)], ["same epoch"]),
        ([(0, 2), (0.5, 1)], []),  # at the same time
    ],
)
def test_epoch_is_assigned_once(
    epochs: list[tuple[float, int]], expected: list[str], tmp_path: Path
) -> None:
    result = transactions.judged(tmp_path, _given(*epochs), "zombie_write")["zombie_write"]
    assert [finding.sub_kind for finding in result.findings] == expected
    for finding in result.findings:
        assert "another producer had received" in finding.sentence
    assert result.status is (Status.VIOLATED if expected else result.status)


def test_log_without_epochs_is_not_judged_by_them(tmp_path: Path) -> None:
    tables = _given((0, 1), (2, 1), producer_id=None)
    result = transactions.judged(tmp_path, tables, "zombie_write")["zombie_write"]
    assert not [finding for finding in result.findings if finding.sub_kind == "same epoch"]
