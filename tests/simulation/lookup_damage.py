"""Evidence of what brokers answered about offsets and leaders, and answers that are wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from urteil.suites.simulation.cluster import EPOCH_MS
from urteil.suites.simulation.evidence import Evidence, Promises
from urteil.suites.simulation.history import Answer, Poll, View

PLACE = ("t", 0)
ENDS_S = 60.0


def answer(
    evidence: Evidence, query: str, offset: int, at_s: float,
    asked_ms: int | None = None, found_ms: int | None = None,
) -> None:  # fmt: skip
    evidence.history.answers.append(
        Answer("a", *PLACE, query, offset, 1, at_s, at_s + 0.1, leader_epoch=0,
               asked_ms=asked_ms, found_ms=found_ms)
    )  # fmt: skip


def view(evidence: Evidence, broker: int, leader: int) -> None:
    evidence.history.views.append(View(broker, *PLACE, leader, 0, 3, ENDS_S - 10))


def look_up(evidence: Evidence) -> None:
    """Right answers: record n has the time of n seconds."""
    evidence.promises = Promises(calm_s=20.0, ends_s=ENDS_S)
    answer(evidence, "latest", 4, 20.0)
    answer(evidence, "earliest", 0, 20.0)
    answer(evidence, "time", 2, 20.0, asked_ms=EPOCH_MS + 1500, found_ms=EPOCH_MS + 2000)
    answer(evidence, "max", 3, 20.0, found_ms=EPOCH_MS + 3000)
    view(evidence, 1, 1)
    view(evidence, 2, 1)


def end_below_what_is_acknowledged(evidence: Evidence) -> None:
    look_up(evidence)
    answer(evidence, "latest", 3, 21.0)


def let_the_end_fall(evidence: Evidence) -> None:
    look_up(evidence)
    answer(evidence, "stable", 4, 21.0)
    answer(evidence, "stable", 3, 22.0)


def find_too_late(evidence: Evidence) -> None:
    look_up(evidence)
    answer(evidence, "time", 3, 21.0, asked_ms=EPOCH_MS + 1500, found_ms=EPOCH_MS + 3000)


def disagree(evidence: Evidence) -> None:
    look_up(evidence)
    view(evidence, 3, 2)


def turn_away(evidence: Evidence) -> None:
    """The named start of the log is out of range for half a minute."""
    look_up(evidence)
    evidence.swept_s["final", PLACE] = 22.0
    evidence.broken_off.add(("final", PLACE))
    for n in range(30):
        at_s = 23.0 + n
        evidence.history.polls.append(
            Poll("final", n, *PLACE, 0, 0, 1, at_s, at_s + 0.1, "OFFSET_OUT_OF_RANGE")
        )
        answer(evidence, "earliest", 0, at_s + 0.5)


def skip_a_record(evidence: Evidence) -> None:
    del evidence.history.reads[1]


def never_name_the_end(evidence: Evidence) -> None:
    """A reader that asks for it from the calm on receives nothing."""
    look_up(evidence)
    for n in range(4):
        answer(evidence, "latest", -1, 30.0 + 2 * n)
        last = evidence.history.answers.pop()
        evidence.history.answers.append(replace(last, client="b", error="OFFSET_NOT_AVAILABLE"))


DAMAGE: dict[Callable[[Evidence], None], str] = {
    end_below_what_is_acknowledged: "end_below_ack",
    let_the_end_fall: "latest_went_back",
    find_too_late: "time_index_wrong",
    disagree: "disagreement",
    turn_away: "wrong_log_start",
    skip_a_record: "poll_skip",
    never_name_the_end: "no_delivery",
}
