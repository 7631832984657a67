"""What suites assert of results."""

from __future__ import annotations

from collections.abc import Sequence

from urteil.harness.verify.result import GuaranteeResult, Result, Status, Verdict


def told(result: Result) -> str:
    """Why a verdict is what it is, and how to see it again."""
    return "\n".join([f"{result.verdict}: {result.command}", *result.reasons])


def guarantee(result: Result, name: str) -> GuaranteeResult:
    """The judgement of one guarantee; KeyError when it was not asked for."""
    return {one.name: one for one in result.guarantees}[name]


def assert_holds(result: Result, *names: str) -> None:
    """PASS, and each of the named guarantees was really judged."""
    assert result.verdict is Verdict.PASS, told(result)
    for name in names:
        assert guarantee(result, name).status is Status.HOLDS, f"{name}: {told(result)}"


def assert_found_and_permitted(repeats: Sequence[Result], name: str) -> None:
    """The last of the repeats shows the anomaly, and in none of them is it a violation.

    A lab that does not find what must be there is itself at fault.
    """
    for result in repeats:
        assert result.verdict is Verdict.PASS, told(result)
    last = repeats[-1]
    assert last.must_find.get(name), f"no {name} in {len(repeats)} repeats: {told(last)}"
    assert guarantee(last, name).status is Status.PERMITTED
