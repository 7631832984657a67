"""Every fault acts on an idle cluster of processes, proves it, and leaves nothing when healed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.waiting import until
from urteil.chaos.controls import Controls
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.faults import FAULTS
from urteil.chaos.observations import DOWNSTREAM
from urteil.harness.cluster import Cluster
from urteil.harness.fault_check import (
    BROKERS,
    RECOVERY_S,
    TOPIC,
    ZOOKEEPERS,
    check_fault,
    prepare,
)
from urteil.harness.scenario import ClusterSpec
from urteil.harness.targets import parse_target

FAMILIES = ("network", "process", "container")
"""Others have tests of their own, with what they need beside an idle cluster."""
HERE = [
    name
    for name, kind in FAULTS.items()
    if kind.family in FAMILIES and not kind.unsupported_reason(runtime="process", target="urteil")
]


@pytest.fixture(scope="module")
def controls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controls]:
    folder: Path = tmp_path_factory.mktemp("faults")
    spec = ClusterSpec(brokers=BROKERS, zookeepers=ZOOKEEPERS)
    with Cluster(spec, parse_target("urteil"), folder) as cluster:
        its_controls = cluster.controls()
        prepare(cluster.bootstrap, its_controls.topics())
        its_controls.await_healthy(deadline_s=RECOVERY_S)
        yield its_controls


@pytest.mark.parametrize("name", HERE)
def test_a_fault_shows_that_it_acted_and_that_it_healed(controls: Controls, name: str) -> None:
    checked = check_fault(controls, name)
    assert checked.acted, checked.proof
    assert checked.proof
    assert checked.healed, checked.healing
    assert checked.healing


def test_broker_without_descriptors_exits_and_is_restarted(tmp_path: Path) -> None:
    often = {"replica.high.watermark.checkpoint.interval.ms": "20"}
    spec = ClusterSpec(brokers=BROKERS, zookeepers=1, config=often)
    with Cluster(spec, parse_target("urteil"), tmp_path) as cluster:
        controls = cluster.controls()
        prepare(cluster.bootstrap, controls.topics())
        controls.await_healthy(deadline_s=RECOVERY_S)
        checked = check_fault(controls, "out_of_descriptors")
    assert checked.good, checked
    assert "exited and runs again" in checked.healing


def test_shown_effects_have_the_requested_size(controls: Controls) -> None:
    """What proofs say in words, by numbers of their own."""
    pair = controls.net.links_between(["b1"], ["b2"])[0]
    sizes = {"bandwidth": {"rate": 50}, "slow_close": {"delay": 400}, "limit_data": {"bytes": 1000}}
    for kind, attributes in sizes.items():
        controls.net.add_toxic([pair], kind, attributes, streams=[DOWNSTREAM], owner="test")
        transfer = controls.net.measure_transfer(pair, request_count=60, dst_closes=True)
        controls.net.heal([pair], owner="test")
        match kind:
            case "slow_close":
                assert (transfer.closing_ms or 0) > 350
            case "limit_data":
                assert transfer.received_bytes == 1000
            case "bandwidth":
                assert transfer.received_bytes / 1000 / transfer.seconds < 65


def test_healing_one_fault_leaves_another_on_the_same_link(controls: Controls) -> None:
    first, second = (
        FAULTS[name](FaultArguments(target="b1->b2", topic=TOPIC, options=options))
        for name, options in (("latency", {"latency_ms": 200.0}), ("partition", {"close": True}))
    )
    assert first.begin(controls).acted
    assert second.begin(controls).acted
    link = controls.net.links_between(["b1"], ["b2"])[0]
    second.heal(controls)
    assert (controls.net.probe(link, timeout_s=10).rtt_ms or 0) > 150
    first.heal(controls)
    until(lambda: 0 < (controls.net.probe(link).rtt_ms or 0) < 150)  # none was, with that latency
    assert controls.net.disturbed_links() == {}


def test_paused_node_stays_paused_under_cpu_throttle(controls: Controls) -> None:
    starving = FAULTS["starve"](FaultArguments(target="b2", topic=TOPIC))
    assert starving.begin(controls).acted
    controls.pause("b2")
    link = next(link for link in controls.net.links() if link.dst == "b2")
    assert not controls.net.probe(link, timeout_s=0.5).answered
    controls.resume("b2")
    starving.heal(controls)
    controls.await_healthy(deadline_s=RECOVERY_S)
    until(lambda: controls.net.probe(link).answered)
