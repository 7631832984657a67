"""Clock faults set the clocks of brokers, and healing corrects them."""

from __future__ import annotations

from itertools import chain, repeat

import pytest

from tests.chaos.paper import PaperCluster
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.faults import FAULTS
from urteil.chaos.faults.base import clock_fault
from urteil.chaos.waiting import until


@pytest.mark.parametrize(("option", "offset_s"), [({}, 300.0), ({"offset_s": -60}, -60.0)])
def test_shifted_clock_is_wrong_until_healing(
    option: dict[str, float], offset_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock_fault, "DEADLINE_S", 0.05)
    cluster = PaperCluster()
    fault = FAULTS["clock_shift"](FaultArguments(target="b1", options=option))
    assert fault.begin(cluster).text.endswith(f"{offset_s:+.1f} s now")
    assert cluster.clocks.ahead == {"b1": offset_s}
    assert fault.find_residual_effects(cluster) == f"b1 is {offset_s:+.1f} s ahead"
    fault.heal(cluster)
    assert fault.find_residual_effects(cluster) == ""


@pytest.mark.parametrize(("rate", "sign"), [(10, 1), (0.1, -1)])
def test_clock_drifts_until_healing(rate: float, sign: int) -> None:
    cluster = PaperCluster()
    fault = FAULTS["clock_drift"](FaultArguments(target="b1", options={"rate": rate}))
    assert fault.begin(cluster).acted
    gained_s = cluster.clocks.ahead["b1"]
    assert gained_s * sign > 0.5
    assert until(lambda: cluster.clocks.ahead["b1"] * sign > gained_s * sign, deadline_s=10)
    fault.heal(cluster)
    assert cluster.clocks.ahead == {"b1": 0.0}
    assert fault.find_residual_effects(cluster) == ""


def test_error_of_two_readings_is_no_drift(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock_fault, "DEADLINE_S", 0.05)
    cluster = PaperCluster(without_effect=True)
    readings = chain([-0.5], repeat(0.5))
    monkeypatch.setattr(cluster.clocks, "clock_offset_s", lambda _node: next(readings))
    monkeypatch.setattr(cluster.clocks, "precision_s", lambda _node: 0.5)
    fault = FAULTS["clock_drift"](FaultArguments(target="b1", options={"rate": 2}))
    assert not fault.begin(cluster).acted
    fault.heal(cluster)


@pytest.mark.parametrize("rate", [0, 1, 11])
def test_invalid_rate_is_rejected(rate: float) -> None:
    with pytest.raises(ValueError, match=f"rate={rate}.* between 0.1 and 10"):
        FAULTS["clock_drift"](FaultArguments(target="b1", options={"rate": rate}))
