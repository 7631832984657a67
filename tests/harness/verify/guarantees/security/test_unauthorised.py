"""A broker may apply changes of rights late, but in their order."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.verify import example_runs
from tests.harness.verify.guarantees.groups.test_group_guarantees import judge
from urteil.harness.verify import synthetic
from urteil.harness.verify.result import GuaranteeResult, Status
from urteil.harness.verify.synthetic import BEGIN_NS, S

SUBJECT = "User:visitor Read Topic"
ONE = synthetic.Shape(records=200, partitions=1)

# An act, or what one broker showed: (second, "grant" or "revoke" or outcome, node).
Event = tuple[float, str, int]


def judged(run_dir: Path, events: list[Event]) -> GuaranteeResult:
    tables = example_runs.healthy(ONE)
    tables["accesses"], tables["admin_ops"] = [], []
    for at_s, what, node in events:
        times = {"invoke_ns": BEGIN_NS + int(at_s * S), "complete_ns": BEGIN_NS + int(at_s * S) + 1}
        row = {"run": "r", "subject": SUBJECT} | times
        if what.startswith(("grant", "revoke")):
            act, _, refused = what.partition(" ")
            outcome = "fail" if refused else "ok"
            tables["admin_ops"].append(row | {"act": act, "outcome": outcome})
        else:
            who = {"client": "visitor", "session": 1, "node": node}
            tables["accesses"].append(row | who | {"outcome": what})
    names = ("unauthorised",)
    scenario, run_facts = synthetic.scenario(ONE), synthetic.facts(ONE)
    return judge(run_dir, tables, scenario, run_facts, names)["unauthorised"]


LATE: list[Event] = [
    (1, "denied", 1), (1, "denied", 2),
    (2, "grant", 0), (3, "ok", 1), (3, "denied", 2), (3.5, "info", 2),
    (4, "revoke", 0), (5, "denied", 1), (5, "ok", 2),  # the second one hears of it late
    (6, "ok", 2), (7, "shows none", 2), (8, "denied", 2),
    (9, "grant", 0), (9, "ok", 1), (10, "ok", 2),
]  # fmt: skip


def test_late_is_not_never(tmp_path: Path) -> None:
    result = judged(tmp_path, LATE)
    assert (result.status, result.opportunities) == (Status.HOLDS, 5), result.findings


@pytest.mark.parametrize(
    ("more", "kind"),
    [
        ([(11, "revoke", 0), (12, "denied", 1), (13, "ok", 1)], "after revocation"),
        ([(11, "revoke", 0), (12, "shows none", 2), (13, "ok", 2)], "after revocation"),
    ],
)
def test_answer_contradicting_an_earlier_view_is_found(
    tmp_path: Path, more: list[Event], kind: str
) -> None:
    result = judged(tmp_path, LATE + more)
    (finding,) = result.findings
    assert (result.status, finding.sub_kind) == (Status.VIOLATED, kind)
    assert f"Broker {more[-1][2]} carried out `{SUBJECT}`" in finding.sentence


def test_access_never_granted_is_found(tmp_path: Path) -> None:
    (finding,) = judged(tmp_path, [(1, "ok", 3)]).findings
    assert finding.sub_kind == "never granted"


def test_granted_right_is_not_refused(tmp_path: Path) -> None:
    (finding,) = judged(tmp_path, [*LATE, (11, "shows grant", 1), (12, "denied", 1)]).findings
    assert finding.sub_kind == "refused"
    assert f"Broker 1 denied `{SUBJECT}`" in finding.sentence


def test_broker_that_never_applies_a_revocation_is_found(tmp_path: Path) -> None:
    """Five seconds after the revocation and the last healing, which is at 23 s, it must have."""
    events: list[Event] = [(1, "denied", 2), (1, "grant", 0), (2, "ok", 1), (3, "revoke", 0)]
    events += [(9, "ok", 1), (27, "ok", 1)]
    assert judged(tmp_path, events).status is Status.HOLDS
    (finding,) = judged(tmp_path / "long", [*events, (30, "ok", 1)]).findings
    assert finding.sub_kind == "long after"
    again = [*events, (8.0, "grant", 0), (30.0, "ok", 1)]
    assert judged(tmp_path / "again", again).status is Status.HOLDS


def test_unanswered_change_may_have_been_made(tmp_path: Path) -> None:
    """Each attempt counts: a delayed one may take effect after all later acts."""
    events = [(1.0, "grant", 0), (2.0, "grant", 0), (3.0, "revoke", 0)]
    attempts = [(2.5, "ok", 1), (4.0, "denied", 1), (5.0, "ok", 1)]
    assert judged(tmp_path, events + attempts).status is Status.HOLDS
    refused = [(1.5, "grant refused", 0) if event == (2.0, "grant", 0) else event
               for event in events]  # fmt: skip
    assert judged(tmp_path / "refused", refused + attempts).status is Status.VIOLATED


def test_without_users_nothing_is_judged(tmp_path: Path) -> None:
    assert judged(tmp_path, []).status is Status.NOT_JUDGED


def test_answers_without_times_yield_no_finding(tmp_path: Path) -> None:
    tables = example_runs.healthy(ONE)
    who = {"client": "visitor", "session": 1, "node": 1, "subject": SUBJECT}
    times = {"invoke_ns": BEGIN_NS + S, "complete_ns": None}
    tables["accesses"] = [who | times | {"outcome": "ok"}]
    result = example_runs.judged(tmp_path, tables, shape=ONE)
    assert example_runs.named(result, "unauthorised").status is Status.UNKNOWN
    expected = (
        "1 access attempt without complete_ns when the attempt was answered (evidence/accesses)"
    )
    assert expected in result.reasons


@pytest.mark.parametrize("lost", ["subject", "invoke_ns", "act"])
def test_changes_without_a_subject_yield_no_finding(lost: str, tmp_path: Path) -> None:
    tables = example_runs.healthy(ONE)
    fields = {
        "subject": SUBJECT,
        "invoke_ns": BEGIN_NS,
        "complete_ns": BEGIN_NS + 1,
        "outcome": "ok",
    }
    tables["admin_ops"] = [fields | {"act": "grant"} | {lost: "" if lost == "act" else None}]
    used = {"invoke_ns": BEGIN_NS + S, "complete_ns": BEGIN_NS + S + 1}
    tables["accesses"] = [fields | used | {"client": "visitor", "session": 1, "node": 1}]
    result = example_runs.judged(tmp_path, tables, shape=ONE)
    assert example_runs.named(result, "unauthorised").status is Status.UNKNOWN
    assert any("evidence/admin_ops" in reason for reason in result.reasons)
