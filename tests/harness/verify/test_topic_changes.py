"""Changes that administrators requested excuse their consequences, for the topic they concern."""

from __future__ import annotations

import json
from typing import Any

import pytest

from urteil.harness.verify.derived.topic_changes import lowest_min_isr, unclean_election_requested

S = 1_000_000_000


def op(act: str, subject: str, **after: str | None) -> dict[str, Any]:
    return {"act": act, "subject": subject, "after": json.dumps(after), "outcome": "info"}


def config(subject: str, name: str, value: str | None) -> dict[str, Any]:
    return op("config", subject, **{name: value})


@pytest.mark.parametrize(
    ("ops", "requested"),
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
def test_unclean_elections_belong_to_the_partition(
    ops: list[dict[str, Any]], requested: bool
) -> None:
    assert unclean_election_requested(ops, "t", 1) is requested


def set_to(value: str | None, at_s: int, outcome: str = "ok") -> dict[str, Any]:
    known = {"invoke_ns": at_s * S, "complete_ns": (at_s + 1) * S, "outcome": outcome}
    return config("t", "min.insync.replicas", value) | known


def fault(name: str, begin_s: int, end_s: int) -> dict[str, Any]:
    return {"fault": name, "acted": True, "begin_ns": begin_s * S, "healed_ns": end_s * S}


OTHERS = [
    config("u", "min.insync.replicas", "0"),
    {"act": "upgrade", "subject": "b1", "after": None},
]


@pytest.mark.parametrize(
    ("values", "lowest"), [([], 2), (["1"], 1), (["3"], 2), (["3", "1", None], 1), (["x"], 2)]
)
def test_the_lowest_min_isr_counts(values: list[str | None], lowest: int) -> None:
    ops = [set_to(value, at_s) for at_s, value in enumerate(values)]
    assert lowest_min_isr([*ops, *OTHERS], [], "t", 2, 0) == lowest


@pytest.mark.parametrize(
    ("since_s", "back", "outcome", "faults", "lowest"),
    [
        (26, "2", "ok", [], 2),
        (25, "2", "ok", [], 1),  # it may not have reached every broker
        (26, None, "ok", [], 1),  # the default is unknown
        (26, "2", "info", [], 1),  # it may come into effect later, or never
        (26, "2", "ok", [fault("crash", 19, 24), fault("min_isr", 10, 21)], 2),
        (26, "2", "ok", [fault("pause", 19, 24)], 1),  # a paused broker receives no setting
        (26, "2", "ok", [fault("pause", 1, 19)], 2),
        (26, "2", "ok", [fault("isolate", 25, 30)], 1),
        (26, "2", "ok", [fault("isolate", 26, 30)], 2),
    ],
)
def test_lowest_min_isr_excludes_settings_replaced_before(
    since_s: int, back: str | None, outcome: str, faults: list[dict[str, Any]], lowest: int
) -> None:
    ops = [*OTHERS, set_to(back, 20, outcome), set_to("1", 10)]
    assert lowest_min_isr(ops, faults, "t", 2, since_s * S) == lowest


def test_lowest_min_isr_includes_later_settings() -> None:
    """A version of a state may last until then."""
    assert lowest_min_isr([set_to("2", 10), set_to("1", 90)], [], "t", 2, 50 * S) == 1
