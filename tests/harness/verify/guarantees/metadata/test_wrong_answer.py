"""A wrong answer is found, unless a fault may have caused it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.verify import example_runs
from tests.harness.verify.guarantees.groups.test_group_guarantees import judge
from urteil.harness.verify import synthetic
from urteil.harness.verify.result import GuaranteeResult, Status
from urteil.harness.verify.synthetic import BEGIN_NS, S

ONE = synthetic.Shape(records=200, partitions=1)
CRASH_S, HEALED_S = 15, 23
"""When the fault of healthy evidence acts."""
NAME = "wrong_answer"

# From, until (seconds), outcome, broker.
Answer = tuple[float, float, str, int]


def _judged(run_dir: Path, *answers: Answer) -> GuaranteeResult:
    tables = example_runs.healthy(ONE)
    who = {"run": "r", "client": "examiner1", "session": 1, "subject": "group.max.size"}
    tables["accesses"] = [
        who
        | {"invoke_ns": BEGIN_NS + int(from_s * S), "complete_ns": BEGIN_NS + int(until_s * S)}
        | {"outcome": outcome, "node": node, "error": "No instead of GroupMaxSizeReached"}
        for from_s, until_s, outcome, node in answers
    ]
    scenario, run_facts = synthetic.scenario(ONE), synthetic.facts(ONE)
    return judge(run_dir, tables, scenario, run_facts, (NAME,))[NAME]


def test_wrong_answer_is_found_with_its_broker(tmp_path: Path) -> None:
    result = _judged(tmp_path, (1, 1.5, "right", 1), (2, 10, "wrong", 2))
    assert (result.status, result.opportunities) == (Status.VIOLATED, 2)
    (finding,) = result.findings
    assert finding.sentence == (
        "Broker 2 gave a wrong answer for 8.0 s to group.max.size: No instead of "
        "GroupMaxSizeReached."
    )


def test_unreachable_brokers_are_a_wrong_answer(tmp_path: Path) -> None:
    (finding,) = _judged(tmp_path, (2, 10, "wrong", -1)).findings
    assert finding.sentence.startswith("The brokers gave a wrong answer for 8.0 s")


def test_right_answers_hold(tmp_path: Path) -> None:
    assert _judged(tmp_path, (1, 2, "right", 1)).status is Status.HOLDS


@pytest.mark.parametrize("at_s", [CRASH_S - 1, CRASH_S + 1, HEALED_S + 4])
def test_differences_during_a_fault_yield_no_finding(at_s: float, tmp_path: Path) -> None:
    assert _judged(tmp_path, (at_s, at_s + 9, "wrong", 2)).status is Status.NOT_JUDGED


def test_five_seconds_after_its_healing_it_counts(tmp_path: Path) -> None:
    assert _judged(tmp_path, (HEALED_S + 6, HEALED_S + 15, "wrong", 2)).status is Status.VIOLATED
