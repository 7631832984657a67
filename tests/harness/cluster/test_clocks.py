"""A broker's own clock: set while it runs, shown by the broker itself, right after healing."""

from __future__ import annotations

from pathlib import Path

import pytest

from urteil.chaos.aim import Aim
from urteil.chaos.faults import FAULTS
from urteil.chaos.views import LabFailure
from urteil.harness.cluster import Cluster
from urteil.harness.scenario import ClusterSpec
from urteil.harness.targets import UrteilTarget


def test_clocks_jump_and_drift_and_are_set_right(tmp_path: Path) -> None:
    spec = ClusterSpec(brokers=1, own_clocks=True)
    with Cluster(spec, UrteilTarget(), tmp_path) as cluster:
        controls = cluster.controls()
        for name, option in (("clock_shift", {"offset_s": -300.0}), ("clock_drift", {"rate": 3.0})):
            fault = FAULTS[name](Aim(target="b1", options=option))
            proof = fault.begin(controls)
            assert proof.acted, proof.text
            fault.heal(controls)
            assert fault.remains(controls) == ""


def test_a_cluster_without_clocks_of_its_own_says_so(tmp_path: Path) -> None:
    cluster = Cluster(ClusterSpec(brokers=1), UrteilTarget(), tmp_path)
    with pytest.raises(LabFailure, match="own_clocks"):
        _ = cluster.controls().clocks
    cluster.close()
