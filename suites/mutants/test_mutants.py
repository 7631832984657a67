"""Every mutant is caught by the guarantee meant for it."""

from __future__ import annotations

import pytest

from urteil.harness.verify.result import Result, Status, Verdict
from urteil.suites.mutants import MUTANTS
from urteil.suites.verdicts import explanation, guarantee


@pytest.mark.parametrize(
    ("mutant_results", "caught_by"),
    [(mutant.name, mutant.guarantee) for mutant in MUTANTS.values()],
    indirect=["mutant_results"],
    ids=list(MUTANTS),
)
def test_mutant_is_caught_by_its_guarantee(mutant_results: list[Result], caught_by: str) -> None:
    for result in mutant_results:
        assert result.verdict is Verdict.FAIL, explanation(result)
        assert guarantee(result, caught_by).status is Status.VIOLATED, explanation(result)
