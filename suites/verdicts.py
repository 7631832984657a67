"""Assertions of the suites on results."""

from __future__ import annotations

from collections.abc import Sequence

from urteil.harness.scenario import Scenario
from urteil.harness.verify.result import GuaranteeResult, Result, Status, Verdict

LOST_WITH_ITS_LEADER = frozenset({"lost_write", "inconsistent_offset"})
"""What acks below all permit: the leader's tail is lost, and its offsets are used again."""


def explanation(result: Result) -> str:
    """The verdict with its reasons and the command that repeats the run."""
    return "\n".join([f"{result.verdict}: {result.command}", *result.reasons])


def guarantee(result: Result, name: str) -> GuaranteeResult:
    """The judgement of one guarantee; KeyError when it was not checked."""
    return {guarantee.name: guarantee for guarantee in result.guarantees}[name]


def assert_expected(scenario: Scenario, results: Sequence[Result]) -> None:
    """Assert what a scenario declares of its repeats.

    Each is PASS, and in the last the scenario's own guarantees hold. A scenario with `must_find`
    may show further permitted anomalies, and one with acks below all may lose a leader's tail. The
    last shows each anomaly of `must_find`: when no repeat shows it, the lab itself is at fault.
    """
    for result in results:
        assert result.verdict is Verdict.PASS, explanation(result)
    last = results[-1]
    permitted = LOST_WITH_ITS_LEADER if scenario.workload.acks != -1 else frozenset()
    for name in scenario.guarantees:
        may_be_permitted = scenario.must_find or name in permitted
        expected = {Status.HOLDS, Status.PERMITTED} if may_be_permitted else {Status.HOLDS}
        assert guarantee(last, name).status in expected, f"{name}: {explanation(last)}"
    for name in scenario.must_find:
        assert last.must_find.get(name), f"no {name} in {len(results)} repeats: {explanation(last)}"
        assert guarantee(last, name).status is Status.PERMITTED, f"{name}: {explanation(last)}"
