"""Assertions of the suites on results."""

from __future__ import annotations

from collections.abc import Sequence

from urteil.harness.verify.result import GuaranteeResult, Result, Status, Verdict


def explanation(result: Result) -> str:
    """The verdict with its reasons and the command that repeats the run."""
    return "\n".join([f"{result.verdict}: {result.command}", *result.reasons])


def guarantee(result: Result, name: str) -> GuaranteeResult:
    """The judgement of one guarantee; KeyError when it was not checked."""
    return {one.name: one for one in result.guarantees}[name]


def assert_holds(result: Result, *names: str) -> None:
    """Assert PASS, and that each named guarantee was judged and holds."""
    assert result.verdict is Verdict.PASS, explanation(result)
    for name in names:
        assert guarantee(result, name).status is Status.HOLDS, f"{name}: {explanation(result)}"


def assert_found_and_permitted(repeats: Sequence[Result], name: str) -> None:
    """Assert that the last repeat shows the anomaly, and that it is a violation in none.

    When no repeat shows the anomaly, the lab itself is at fault.
    """
    for result in repeats:
        assert result.verdict is Verdict.PASS, explanation(result)
    last = repeats[-1]
    assert last.must_find.get(name), f"no {name} in {len(repeats)} repeats: {explanation(last)}"
    assert guarantee(last, name).status is Status.PERMITTED
