"""What a suite requires of a scenario's results."""

from __future__ import annotations

import msgspec
import pytest

from urteil.harness.scenarios import SCENARIOS
from urteil.harness.verify.result import GuaranteeResult, Result, Status, Verdict
from urteil.suites.verdicts import assert_expected


def _result(name: str, **statuses: Status) -> Result:
    """A PASS in which the scenario's own guarantees hold, but for these statuses."""
    scenario = SCENARIOS[name]
    named = (*scenario.guarantees, *scenario.must_find)
    own = dict.fromkeys(named, Status.HOLDS) | statuses
    blank = {key: "" for key in ("mutant", "command", "run", "engine")}
    fields = blank | {"verdict": Verdict.PASS, "reasons": [], "seed": 1, "scenario": name}
    fields |= {"target": "urteil", "runtime": "process", "versions": {}, "seconds": {}}
    fields |= {"counts": {}, "faults": [], "must_find": dict.fromkeys(scenario.must_find, True)}
    fields["guarantees"] = [
        GuaranteeResult(name=name, status=status, promise="", source="")
        for name, status in own.items()
    ]
    return msgspec.convert(fields, Result, from_attributes=True)


def test_scenario_with_holding_guarantees_is_expected() -> None:
    assert_expected(SCENARIOS["calm"], [_result("calm")])


def test_failed_verdict_is_not_expected() -> None:
    failed = msgspec.structs.replace(_result("calm"), verdict=Verdict.FAIL)
    with pytest.raises(AssertionError):
        assert_expected(SCENARIOS["calm"], [failed])


@pytest.mark.parametrize("status", [Status.PERMITTED, Status.NOT_JUDGED, Status.UNKNOWN])
def test_own_guarantee_has_to_hold(status: Status) -> None:
    with pytest.raises(AssertionError, match="lost_write"):
        assert_expected(SCENARIOS["calm"], [_result("calm", lost_write=status)])


def test_permitted_loss_is_expected_where_acks_are_below_all() -> None:
    assert_expected(
        SCENARIOS["leader-moves"], [_result("leader-moves", lost_write=Status.PERMITTED)]
    )


def test_acks_below_all_permit_no_other_anomaly() -> None:
    divergent = _result("leader-moves", replica_divergence=Status.PERMITTED)
    with pytest.raises(AssertionError, match="replica_divergence"):
        assert_expected(SCENARIOS["leader-moves"], [divergent])


def test_required_anomaly_is_found_and_permitted() -> None:
    result = _result("unclean-on", lost_write=Status.PERMITTED)
    assert_expected(SCENARIOS["unclean-on"], [result])
    missed = msgspec.structs.replace(result, must_find={"lost_write": False})
    with pytest.raises(AssertionError, match="no lost_write in 1 repeats"):
        assert_expected(SCENARIOS["unclean-on"], [missed])
    with pytest.raises(AssertionError, match="lost_write"):
        assert_expected(SCENARIOS["unclean-on"], [_result("unclean-on")])
