"""ACLs and quotas: no client exceeds its rights or its quota."""

from __future__ import annotations

import pytest

from urteil.harness.verify.result import Result
from urteil.suites.verdicts import assert_holds

SCENARIOS = ("rights", "rights-crash", "rights-cut-off")


@pytest.mark.parametrize("result", ["quotas"], indirect=True)
def test_client_stays_within_its_quota(result: Result) -> None:
    assert_holds(result, "quota_exceeded", "lost_write")


@pytest.mark.parametrize("result", SCENARIOS, indirect=True)
def test_unauthorised_operations_are_rejected(result: Result) -> None:
    assert_holds(result, "unauthorised")
