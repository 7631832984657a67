"""Clocks go where they are told, and right again."""

from __future__ import annotations

import pytest

from tests.chaos.paper import PaperCluster
from urteil.chaos.aim import Aim
from urteil.chaos.faults import FAULTS, clock
from urteil.chaos.faults.base import until


@pytest.mark.parametrize(("option", "ahead_s"), [({}, 300.0), ({"offset_s": -60}, -60.0)])
def test_a_clock_is_wrong_until_it_is_healed(
    option: dict[str, float], ahead_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock, "SHOWN_S", 0.05)
    cluster = PaperCluster()
    fault = FAULTS["clock_shift"](Aim(target="b1", options=option))
    assert fault.begin(cluster).text.endswith(f"{ahead_s:+.1f} s now")
    assert cluster.clocks.ahead == {"b1": ahead_s}
    assert fault.remains(cluster) == f"b1 is {ahead_s:+.1f} s ahead"
    fault.heal(cluster)
    assert fault.remains(cluster) == ""


@pytest.mark.parametrize(("rate", "sign"), [(10, 1), (0.1, -1)])
def test_a_clock_drifts_until_it_is_healed(rate: float, sign: int) -> None:
    cluster = PaperCluster()
    fault = FAULTS["clock_drift"](Aim(target="b1", options={"rate": rate}))
    assert fault.begin(cluster).acted
    gained_s = cluster.clocks.ahead["b1"]
    assert gained_s * sign > 0.5
    assert until(lambda: cluster.clocks.ahead["b1"] * sign > gained_s * sign, deadline_s=10)
    fault.heal(cluster)
    assert cluster.clocks.ahead == {"b1": 0.0}
    assert fault.remains(cluster) == ""


@pytest.mark.parametrize("rate", [0, 1, 11])
def test_a_rate_that_is_none_is_refused(rate: float) -> None:
    with pytest.raises(ValueError, match=f"rate={rate} is not between"):
        FAULTS["clock_drift"](Aim(target="b1", options={"rate": rate}))
