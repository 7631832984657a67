"""Options of faults are typed and bounded by their declarations."""

from __future__ import annotations

import pytest

from urteil.chaos.fault_options import Option
from urteil.chaos.faults import FAULTS, FaultArguments


@pytest.mark.parametrize(
    ("fault", "option", "given", "value"),
    [
        ("latency", "latency_ms", "50", 50),
        ("latency", "latency_ms", 49.6, 50),
        ("starve", "cpus", "0.5", 0.5),
        ("partition", "close", "yes", True),
        ("partition", "close", 0, False),
        ("partition", "direction", "two-way", "two-way"),
        ("min_isr", "min.insync.replicas", "2", 2),
        ("reassign", "cancel", 1, True),
    ],
)
def test_given_value_gets_the_declared_type(
    fault: str, option: str, given: Option, value: Option
) -> None:
    made = FAULTS[fault](FaultArguments(target="topic", options={option: given}))
    read = getattr(made, FAULTS[fault].options[option].attribute)
    assert (read, type(read)) == (value, type(value))


@pytest.mark.parametrize(
    ("fault", "option", "given", "message"),
    [
        ("latency", "latency_ms", "soon", "latency_ms must be a number, not soon"),
        ("latency", "latency_ms", True, "latency_ms must be a number, not True"),
        ("latency", "latency_ms", float("nan"), "latency_ms must be a number, not nan"),
        ("latency", "latency_ms", 0, "latency_ms=0 is not between 1 and 60000"),
        ("latency", "jitter_ms", 201, "jitter_ms=201 is not between 0 and latency_ms"),
        ("partition", "direction", 2.0, "direction is '2': give one-way or two-way"),
        ("bandwidth", "rate_kb_per_s", 0, "rate_kb_per_s=0 is below 1"),
        ("kill_client", "for_good", "maybe", "for_good is 'maybe': give true or false"),
        ("partition", "direction", "up", "direction is 'up': give one-way or two-way"),
        (
            "late_command",
            "command",
            "Fetch",
            "command is 'Fetch': give UpdateMetadata or StopReplica",
        ),
        ("crash", "latency_ms", 1, "crash takes no option latency_ms"),
    ],
)
def test_invalid_value_is_rejected(fault: str, option: str, given: Option, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FAULTS[fault](FaultArguments(target="leader", options={option: given}))


def test_missing_options_have_their_defaults() -> None:
    for fault in FAULTS.values():
        made = fault(FaultArguments(target="leader"))
        for option in fault.options.values():
            if option.default is not None:
                assert getattr(made, option.attribute) == option.default or option.default == ""


def test_declared_default_is_a_permitted_value() -> None:
    for fault in FAULTS.values():
        for option in fault.options.values():
            if option.default is not None:
                assert option.read(option.default) == option.default


def test_description_has_bounds_and_default() -> None:
    assert str(FAULTS["latency"].options["latency_ms"]) == (
        "delay of a request (1 to 60000 ms, default 200)"
    )
    assert str(FAULTS["isolate"].options["brokers"]) == (
        "cut from the other brokers (default true)"
    )


def test_role_coordinator_has_options_in_every_fault() -> None:
    for fault in FAULTS.values():
        fault(FaultArguments(target="coordinator", options={"group": "g", "transactional_id": "t"}))
