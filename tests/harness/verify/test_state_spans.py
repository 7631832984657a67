"""Versions of a state as spans, and the floors below which no election loses records."""

from __future__ import annotations

import json

from urteil.harness.verify.derived.state_spans import Span, floors, spans_of
from urteil.harness.verify.limits import CLOCK_SLACK_NS, FOREVER_NS, NO_OFFSET

S = 1_000_000_000


def _spans(*versions: tuple[int, int, int, list[int]]) -> list[Span]:
    rows = [
        {
            "topic_id": "t",
            "topic": "urteil",
            "partition": 0,
            "zxid": n,
            "version": n,
            "at_ns": at_s * S,
            "leader": leader,
            "leader_epoch": epoch,
            "controller_epoch": 1,
            "isr": json.dumps(isr),
            "path": "/p",
        }
        for n, (at_s, leader, epoch, isr) in enumerate(versions)
    ]
    return spans_of(reversed(rows), {("t", 0): 0})[0]


def test_deleted_topic_requires_nothing() -> None:
    deleted = {"zxid": 1, "version": -1, "at_ns": 9 * S, "leader": None, "leader_epoch": None}
    short = {"leader": 1, "leader_epoch": 0, "controller_epoch": 1, "isr": "[1]"}
    here = {"topic_id": "t", "topic": "urteil", "partition": 0, "path": "/p"}
    made = here | short | {"zxid": 0, "version": 0, "at_ns": 0}
    assert [s.end_ns for s in spans_of([made, here | deleted], {("t", 0): 0})[0]] == [9 * S]
    assert spans_of([here | deleted], {("t", 0): 0}) == {}


def test_spans_follow_the_order_of_zxid() -> None:
    spans = _spans((0, 1, 0, [1, 2]), (10, 1, 0, [1]), (20, 2, 1, [2]))
    assert [(span.begin_ns // S, span.leader) for span in spans] == [(0, 1), (10, 1), (20, 2)]
    assert spans[0].end_ns == spans[1].begin_ns
    assert spans[-1].end_ns == FOREVER_NS
    assert [span.begins_epoch for span in spans] == [True, False, True]
    assert [span.unclean for span in spans] == [False, False, True]
    assert spans[2].row()["prev_isr"] == ",1,"


def test_leader_that_returns_after_a_leaderless_time_has_no_finding() -> None:
    spans = _spans((0, 1, 0, [1]), (5, -1, 1, [1]), (9, 1, 2, [1]), (12, 2, 3, [2]))
    assert [span.unclean for span in spans] == [False, False, False, True]


def test_leader_from_the_eligible_replicas_is_clean() -> None:
    def spans(elr: str | None) -> list[Span]:
        common = {"topic_id": "t", "topic": "urteil", "partition": 0, "path": "/p"}
        common |= {"controller_epoch": 1}
        lone = {"zxid": 0, "version": 0, "at_ns": 0, "leader": 1, "leader_epoch": 0, "isr": "[1]"}
        none = {"zxid": 1, "version": 1, "at_ns": 5, "leader": -1, "leader_epoch": 1, "isr": "[]"}
        back = {"zxid": 2, "version": 2, "at_ns": 9, "leader": 2, "leader_epoch": 2, "isr": "[2]"}
        rows = [common | row for row in (lone | {"elr": elr}, none | {"elr": elr}, back)]
        return spans_of(rows, {("t", 0): 0})[0]

    assert [span.unclean for span in spans("[1, 2]")] == [False, False, False]
    assert spans("[1, 2]")[2].row()["prev_elr"] == ",1,2,"
    assert [span.unclean for span in spans("[]")] == [False, False, True]
    assert [span.unclean for span in spans(None)] == [False, False, True]


def test_floors_are_where_later_epochs_start() -> None:
    spans = _spans((0, 1, 0, [1, 2]), (10, 2, 1, [2]), (20, 1, 2, [1]))
    spans_of_floor = floors(spans, {0: 0, 1: 100, 2: 150}, 200)

    def at(second: float) -> tuple[int, int]:
        time_ns = int(second * S) + CLOCK_SLACK_NS
        (floor,) = [span for span in spans_of_floor if span.from_ns <= time_ns < span.to_ns]
        return floor.any_floor, floor.unclean_floor

    assert at(-5) == at(1 - CLOCK_SLACK_NS / S) == (100, 150)  # made then: nothing was there before
    assert at(5) == (100, 150)
    assert at(15) == (150, 150)
    assert at(25) == (NO_OFFSET, NO_OFFSET)


def test_missing_first_versions_may_hide_an_election() -> None:
    (floor,) = floors(_spans((0, 1, 0, [1]), (5, 1, 3, [1]))[1:], {3: 40}, 200)[-1:]
    assert floor.any_floor == 40


def test_empty_epoch_starts_with_the_next_one() -> None:
    spans = _spans((0, 1, 0, [1, 2]), (10, 2, 1, [2, 1]), (20, 1, 2, [1, 2]))
    assert floors(spans, {0: 0, 2: 150}, 200)[1].any_floor == 150
    assert floors(spans, {0: 0}, 200)[0].any_floor == NO_OFFSET
    assert floors(spans, {0: 0}, 200)[1].any_floor == 200


def test_without_states_every_loss_might_be_an_elections() -> None:
    (floor,) = floors([], {}, 0)
    assert (floor.any_floor, floor.unclean_floor) == (0, 0)
