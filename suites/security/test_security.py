"""Nobody does what was not granted, or what a broker had shown to be granted no more."""

from __future__ import annotations

import pytest

from urteil.harness.verify.result import Result
from urteil.suites.verdicts import assert_holds

SCENARIOS = ("rights", "rights-crash", "rights-cut-off")


@pytest.mark.parametrize("result", ["quotas"], indirect=True)
def test_nobody_takes_more_than_its_quota(result: Result) -> None:
    assert_holds(result, "quota_exceeded", "lost_write")


@pytest.mark.parametrize("result", SCENARIOS, indirect=True)
def test_nobody_does_what_was_not_granted(result: Result) -> None:
    assert_holds(result, "unauthorised")
