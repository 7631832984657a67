"""What administrators asked for excuses what follows from it, where they asked for it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from urteil.harness.verify.administered import lowest_min_isr, unclean_asked


def op(act: str, subject: str, **after: str | None) -> dict[str, Any]:
    return {"act": act, "subject": subject, "after": json.dumps(after), "outcome": "info"}


def config(subject: str, name: str, value: str | None) -> dict[str, Any]:
    return op("config", subject, **{name: value})


@pytest.mark.parametrize(
    ("ops", "asked"),
    [
        ([], False),
        ([op("elect unclean", "t-1")], True),
        ([op("elect unclean", "t")], True),
        ([op("elect unclean", "t-0")], False),
        ([op("elect preferred", "t-1")], False),
        ([config("t", "unclean.leader.election.enable", "true")], True),
        ([config("t", "unclean.leader.election.enable", "false")], False),
        ([config("u", "unclean.leader.election.enable", "true")], False),
        ([{"act": "elect unclean", "subject": "t-1", "after": None}], True),
    ],
)
def test_unclean_elections_are_those_of_the_partition(
    ops: list[dict[str, Any]], asked: bool
) -> None:
    assert unclean_asked(ops, "t", 1) is asked


@pytest.mark.parametrize(
    ("values", "lowest"), [([], 2), (["1"], 1), (["3"], 2), (["3", "1", None], 1), (["x"], 2)]
)
def test_the_lowest_min_isr_counts(values: list[str | None], lowest: int) -> None:
    ops = [config("t", "min.insync.replicas", value) for value in values]
    ops += [
        config("u", "min.insync.replicas", "0"),
        {"act": "upgrade", "subject": "b1", "after": None},
    ]
    assert lowest_min_isr(ops, "t", 2) == lowest
