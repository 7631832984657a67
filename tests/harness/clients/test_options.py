"""Workload options: text becomes typed values, and errors name option, values and near names."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from urteil.harness.clients.kind import declared_options
from urteil.harness.clients.options import (
    GroupOptions,
    MembershipOptions,
    OptionError,
    OutcomeOptions,
    SendOptions,
    TransactionOptions,
    describe,
    impossible_options,
)
from urteil.harness.clients.workload import check_workload
from urteil.harness.scenario import TopicSpec, WorkloadSpec
from urteil.harness.scenarios import SCENARIOS


def test_text_becomes_typed_values() -> None:
    load = WorkloadSpec(
        options={"assignor": "cooperative", "static": "1", "zombie_commits": "true", "aborts": "1"}
    )
    options = GroupOptions.of(load)
    assert (options.static, options.zombie_commits) == (True, True)
    assert MembershipOptions.of(load).assignor == "cooperative"
    assert OutcomeOptions.of(load).aborts == 1.0


def test_absent_options_have_their_defaults() -> None:
    assert GroupOptions.of(WorkloadSpec()) == GroupOptions()
    assert SendOptions.of(WorkloadSpec()).linger_ms is None


@pytest.mark.parametrize(
    ("option", "text", "message"),
    [
        ("assignor", "sticky", "assignor is 'sticky': give cooperative or range"),
        ("aborts", "1.5", "aborts is '1.5': give a number from 0 to 1"),
        ("copiers", "-1", "copiers is '-1': give a whole number from 0 to 1000"),
        ("copiers", "two", "copiers is 'two': give a whole number from 0 to 1000"),
        ("static", "maybe", "static is 'maybe': give 0 or 1"),
        ("linger_ms", "", "linger_ms is '': give a whole number from 0 to 3600000"),
        ("coppiers", "1", "'coppiers' does not exist; did you mean copiers?"),
        ("xyz", "1", "'xyz' does not exist; known: "),
    ],
)
def test_invalid_option_is_rejected(option: str, text: str, message: str) -> None:
    with pytest.raises(OptionError, match="workload option") as failure:
        check_workload(WorkloadSpec(options={option: text}))
    assert message in str(failure.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"remote_assignor": "range"}, "remote_assignor is for group_protocol=consumer; the"),
        ({"group_protocol": "consumer", "assignor": "range"}, "assignor is for group_protocol=cl"),
        ({"group_protocol": "consumer", "migrates": "1", "static": "1"}, "do not migrate"),
        ({"migrates": "1"}, "migrates is for group_protocol=consumer; the"),
    ],
)
def test_option_of_the_other_protocol_is_rejected(options: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        check_workload(WorkloadSpec(options=options))


@pytest.mark.parametrize(
    ("kind", "message"), [("apend", "did you mean append?"), ("x", "known: append, group")]
)
def test_unknown_workload_kind_is_rejected(kind: str, message: str) -> None:
    with pytest.raises(ValueError, match="workload kind") as failure:
        check_workload(WorkloadSpec(kind=kind))
    assert message in str(failure.value)


def test_late_records_need_a_second_partition() -> None:
    load = WorkloadSpec(kind="transactions", options={"late_produces": "1"})
    check_workload(load)
    with pytest.raises(ValueError, match="late_produces needs a second partition of small: give"):
        check_workload(replace(load, topics=(TopicSpec(name="small", partitions=1),)))


@pytest.mark.parametrize("name", SCENARIOS)
def test_options_of_scenarios_are_valid(name: str) -> None:
    check_workload(SCENARIOS[name].workload)


def test_impossible_values_of_an_earlier_run_are_reported() -> None:
    options = {"commit": "never", "aborts": "0.5", "unknown": "1"}
    assert impossible_options(options, [GroupOptions, TransactionOptions]) == {
        "commit": "after or before"
    }


def test_each_option_is_declared_once_with_sentence_and_possible_values() -> None:
    rows = [row for options in declared_options() for row in describe(options)]
    assert len({row.name for row in rows}) == len(rows)
    assert all(row.about.endswith(".") and row.values for row in rows)


def test_defaults_are_possible_values() -> None:
    for options in declared_options():
        known = {option.name: option.default for option in describe(options) if option.default}
        assert options.of(WorkloadSpec(options=known)) == options()
        assert msgspec.structs.fields(options)
