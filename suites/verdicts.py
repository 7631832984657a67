"""Assertions of the suites on results."""

from __future__ import annotations

from collections.abc import Sequence

from urteil.harness.scenario import Scenario
from urteil.harness.verify.permitted import permitted_guarantees
from urteil.harness.verify.result import GuaranteeResult, Result, Status, Verdict


def explanation(result: Result) -> str:
    """The verdict with its reasons and the command that repeats the run."""
    return "\n".join([f"{result.verdict}: {result.command}", *result.reasons])


def guarantee(result: Result, name: str) -> GuaranteeResult:
    """The judgement of one guarantee; KeyError when it was not checked."""
    return {guarantee.name: guarantee for guarantee in result.guarantees}[name]


def assert_expected(scenario: Scenario, results: Sequence[Result]) -> None:
    """Assert what a scenario declares of its repeats.

    Each is PASS, and in the last the scenario's own guarantees hold, or have anomalies that its
    settings and faults permit. The last shows each anomaly of `must_find`: when no repeat shows
    it, the lab itself is at fault.
    """
    for result in results:
        assert result.verdict is Verdict.PASS, explanation(result)
    last = results[-1]
    permitted = permitted_guarantees(scenario)
    for name in scenario.guarantees:
        expected = {Status.HOLDS, Status.PERMITTED} if name in permitted else {Status.HOLDS}
        assert guarantee(last, name).status in expected, f"{name}: {explanation(last)}"
    for name in scenario.must_find:
        assert last.must_find.get(name), f"no {name} in {len(results)} repeats: {explanation(last)}"
        assert guarantee(last, name).status is Status.PERMITTED, f"{name}: {explanation(last)}"
