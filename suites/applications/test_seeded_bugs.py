"""Each seeded bug of an application is found, by a guarantee about applications."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from urteil.harness.clients.applications import application_of
from urteil.harness.clients.applications.client_kind import KIND
from urteil.harness.scenarios import SCENARIOS
from urteil.harness.verify.result import Result, Status, Verdict
from urteil.suites.verdicts import explanation

BUGS = [
    (scenario.name, variant)
    for scenario in SCENARIOS.values()
    for application in [application_of(scenario.workload)]
    if application is not None and scenario.name in (application.bugs_show_in or [scenario.name])
    for variant in application.variants
]


@pytest.mark.parametrize(("name", "variant"), BUGS)
def test_seeded_bug_of_an_application_fails(
    play: Callable[..., Result], name: str, variant: str
) -> None:
    load = SCENARIOS[name].workload
    workload = msgspec.structs.replace(load, options=load.options | {"variant": variant})
    result = play(name, workload=workload)
    violated = {
        guarantee.name for guarantee in result.guarantees if guarantee.status is Status.VIOLATED
    }
    assert result.verdict is Verdict.FAIL, explanation(result)
    assert violated <= set(KIND.judged_by), explanation(result)
