"""A fault declares options with bounds, runtimes, targets and effects."""

from __future__ import annotations

import pytest

from tests.chaos.paper_faults import arguments, sample_target
from urteil.chaos.effects import Effect
from urteil.chaos.faults import FAULTS, Fault

FAMILIES = {
    "network", "packet", "process", "container", "disk", "zookeeper", "clock", "clients",
    "administration", "protocol",
}  # fmt: skip


def test_unknown_option_is_rejected() -> None:
    with pytest.raises(ValueError, match="latency takes no option delay; known: latency_ms"):
        FAULTS["latency"](arguments("all", delay=3))


@pytest.mark.parametrize("name", FAULTS)
def test_fault_list_prints_the_declarations(name: str) -> None:
    fault = FAULTS[name]
    assert fault.about
    assert fault.proves
    assert fault.family in FAMILIES
    assert fault.expiry_s > 0
    assert set(fault.on_runtimes) <= {"process", "docker", "ssh"}
    assert set(fault.on_targets) <= {"urteil", "kafka", "kafka-kraft", "mix", "external"}
    assert set(fault.sample_options) <= set(fault.options)


def test_fault_stands_in_the_folder_of_its_family() -> None:
    for fault in FAULTS.values():
        assert fault.__module__.split(".")[:4] == ["urteil", "chaos", "faults", fault.family]


def test_second_fault_of_the_same_name_is_rejected() -> None:
    with pytest.raises(ValueError, match="two faults are named crash"):
        type("Crash", (Fault,), {"name": "crash"})


def test_unsupported_runtime_or_target_has_a_reason() -> None:
    unplug = FAULTS["unplug"]
    assert unplug.unsupported_reason(runtime="docker", target="kafka:3.8.0") == ""
    assert "--runtime docker" in unplug.unsupported_reason(runtime="process", target="urteil")
    assert "external" in unplug.unsupported_reason(runtime="", target="external:x.toml")
    assert FAULTS["crash"].unsupported_reason(runtime="", target="external:x.toml") == ""


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("bandwidth", {"rate_kb_per_s": 0}),
        ("slow_close", {"delay_ms": 50}),
        ("reset", {"after_ms": 5000}),
        ("cut_after", {"bytes": 5}),
        ("slices", {"bytes": 10, "variation_bytes": 10}),
        ("flapping", {"lowest_ms": 10}),
        ("crash_loop", {"lowest_ms": 3000}),
        ("starve", {"cpus": 2}),
    ],
)
def test_number_out_of_range_is_rejected(name: str, options: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        FAULTS[name](arguments("leader", **options))


def test_external_cluster_rejects_quotas() -> None:
    """They are for its other clients too, and nobody takes them away when the lab is killed."""
    assert FAULTS["quota"].unsupported_reason(runtime="", target="external:theirs.toml")


@pytest.mark.parametrize("name", FAULTS)
def test_fault_has_effects(name: str) -> None:
    fault = FAULTS[name]
    assert fault.effects
    injected = fault(arguments(sample_target(name))).injected_effects()
    assert injected
    assert injected <= fault.effects | {Effect.KILLS_NODES}


def test_effects_depend_on_options() -> None:
    def effects(name: str, **options: str | float | bool) -> frozenset[Effect]:
        return FAULTS[name](arguments("b1", **options)).injected_effects()

    assert effects("rolling_restart", kill=True) == {Effect.KILLS_NODES, Effect.RESTARTS_NODES}
    assert effects("limit", memory_mb=64) == {Effect.LIMITS_MEMORY}
    assert effects("segment_damaged", up=True, repair=False) == {Effect.DAMAGES_FILES}


@pytest.mark.parametrize(
    ("name", "selector", "options"),
    [
        ("crash", "zookeeper_majority", {}),
        ("pause", "zk1", {}),
        ("partition", "controller->zookeeper", {}),
        ("isolate", "leader", {"brokers": False, "zookeeper": True}),
        ("session_expired", "leader", {}),
    ],
)
def test_fault_on_zookeeper_is_refused_without_zookeeper(
    name: str, selector: str, options: dict[str, bool]
) -> None:
    def reason(target: str) -> str:
        return FAULTS[name].unsupported_reason(
            runtime="process", target=target, selector=selector, options=options
        )

    assert reason("kafka-kraft:3.9.1").startswith(f"the fault {name} ")
    assert not reason("kafka")


@pytest.mark.parametrize("selector", ["quorum_leader", "b1->q2", "quorum_minority<->quorum"])
def test_fault_on_the_quorum_is_refused_with_zookeeper(selector: str) -> None:
    name = "partition" if "-" in selector else "crash"

    def reason(target: str) -> str:
        return FAULTS[name].unsupported_reason(runtime="process", target=target, selector=selector)

    assert reason("urteil").endswith("--target urteil has none: take --target kafka:4.4.0")
    assert not reason("kafka:4.4.0")


def test_fault_on_brokers_acts_without_zookeeper() -> None:
    for name, selector, options in (
        ("crash", "leader", {}),
        ("isolate", "leader", {"zookeeper": True}),
        ("partition", "leader<->followers", {}),
    ):
        assert not FAULTS[name].unsupported_reason(
            runtime="process", target="kafka-kraft", selector=selector, options=options
        )
