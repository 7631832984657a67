"""Questions are repeated until the answer is right or time is over; our broker answers all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from tests.harness.clients.specs import spec_of
from urteil.harness.clients.special import known_answers
from urteil.harness.clients.special.known_answers import (
    LONG_NS,
    PATIENCE_NS,
    KnownAnswers,
    Subject,
    questions,
)
from urteil.harness.clients.stop import Stop
from urteil.harness.cluster import Cluster
from urteil.harness.conformance.question import PreconditionFailed, Question
from urteil.harness.evidence.journal import Access
from urteil.harness.scenarios.administration import KNOWN_ANSWERS
from urteil.harness.targets import UrteilTarget

S = 1_000_000_000


class _Clock(Stop):
    """Each question takes a second; the stop is requested at `ends_at_ns`."""

    def __init__(self) -> None:
        super().__init__()
        self.now_ns, self.ends_at_ns = 0, 1 << 62

    def is_set(self) -> bool:
        return self.now_ns >= self.ends_at_ns

    def wait(self, seconds: float) -> None:
        pass


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> _Clock:
    own_clock = _Clock()
    monkeypatch.setattr(known_answers.time, "monotonic_ns", lambda: own_clock.now_ns)
    monkeypatch.setattr(known_answers, "Brokers", lambda *_: None)
    return own_clock


def _ask(clock: _Clock, *results: Any) -> tuple[list[Access], list[str]]:
    """The journal entries and names of a question with these answers; the last one repeats."""
    answers, names = list(results), []
    written: list[Any] = []

    def ask(_: Any, name: str) -> tuple[int, str]:
        names.append(name)
        clock.now_ns += S
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        return 2, answer

    journal: Any = type("Journal", (), {"write": staticmethod(written.append)})
    question = Question(about="what", answer="yes", ask=ask)
    KnownAnswers(spec_of("examiner1", "examiner", questions="1"), journal, clock).ask_until_right(
        question
    )
    return written, names


def test_right_answer_may_come_late(clock: _Clock) -> None:
    (entry,), names = _ask(clock, "no", OSError(), "yes")
    assert (entry.node, entry.outcome, entry.error, entry.complete_ns) == (2, "right", None, 3 * S)
    assert len(set(names)) == 3


@pytest.mark.parametrize(
    ("result", "patience_ns", "node", "message"),
    [
        ("no", PATIENCE_NS, 2, "no instead of yes"),
        (
            PreconditionFailed("Produce: NotEnoughReplicas"),
            LONG_NS,
            -1,
            "Produce: NotEnoughReplicas",
        ),
        (TimeoutError(), LONG_NS, -1, "no answer (TimeoutError)"),
        (IndexError("0"), LONG_NS, -1, "an answer that lacks something (IndexError: 0)"),
    ],
)
def test_lasting_wrong_answer_is_journaled(
    result: Any, patience_ns: int, node: int, message: str, clock: _Clock
) -> None:
    (entry,), _ = _ask(clock, result)
    assert (entry.node, entry.outcome) == (node, "wrong")
    assert str(entry.error).startswith(message)
    assert entry.complete_ns == patience_ns + S


def test_open_question_at_the_end_is_not_journaled(clock: _Clock) -> None:
    clock.ends_at_ns = 3 * S
    assert _ask(clock, "no")[0] == []


def test_questions_are_unique() -> None:
    asked = [question.about for question in questions()]
    assert len(set(asked)) == len(asked)


@pytest.mark.parametrize("subject", get_args(Subject))
def test_subject_has_some_of_all_questions(subject: Subject) -> None:
    asked = {question.about for question in questions(subject)}
    assert asked
    assert asked <= {question.about for question in questions()}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(KNOWN_ANSWERS.cluster, UrteilTarget(), tmp_path) as started:
        yield started


@pytest.mark.thorough
def test_our_brokers_answer_all_questions(cluster: Cluster) -> None:
    written: list[Any] = []
    journal: Any = type("Journal", (), {"write": staticmethod(written.append)})
    spec = spec_of("examiner1", "examiner", questions="1")
    spec = msgspec.structs.replace(spec, bootstrap=tuple(cluster.bootstrap))
    asking = KnownAnswers(spec, journal, Stop())
    for question in questions():
        asking.ask_until_right(question)
    assert [entry for entry in written if entry.outcome != "right"] == []
