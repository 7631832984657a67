"""Questions are repeated until the answer is right or time is over; our broker answers all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from tests.harness.clients.specs import spec_of
from urteil.harness.clients.special.known_answers import Subject, ask_questions, questions
from urteil.harness.clients.stop import Stop
from urteil.harness.cluster import Cluster
from urteil.harness.conformance.environment import Environment
from urteil.harness.conformance.examiner import LONG_NS, PATIENCE_NS, Answered, Examiner
from urteil.harness.conformance.question import PreconditionFailed, Question
from urteil.harness.scenarios.administration import KNOWN_ANSWERS
from urteil.harness.targets import UrteilTarget

S = 1_000_000_000


class _EndedRun(Stop):
    """The stop of a run that ends when the client has nothing more to do."""

    def wait_until_set(self) -> None:
        pass


class _Clock(Environment):
    """The time of questions that take a second each; as a stop, it is set at `ends_at_ns`."""

    def __init__(self) -> None:
        self.now_ns, self.ends_at_ns = 0, 1 << 62

    def monotonic_ns(self) -> int:
        return self.now_ns

    def is_set(self) -> bool:
        return self.now_ns >= self.ends_at_ns

    def wait(self, seconds: float, /) -> None:
        pass


@pytest.fixture
def clock() -> _Clock:
    return _Clock()


def _ask(clock: _Clock, *results: Any) -> tuple[Answered | None, list[str]]:
    """How a question with these answers ends, and its names; the last answer repeats."""
    answers, names = list(results), []

    def ask(_: Any, name: str) -> tuple[int, str]:
        names.append(name)
        clock.now_ns += S
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        return 2, answer

    question = Question(about="what", answer="yes", ask=ask)
    return Examiner(clock, [], 1.0, "examiner1", clock).ask_until_right(question), names


def test_right_answer_may_come_late(clock: _Clock) -> None:
    entry, names = _ask(clock, "no", OSError(), "yes")
    assert entry is not None
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
def test_lasting_wrong_answer_is_wrong(
    result: Any, patience_ns: int, node: int, message: str, clock: _Clock
) -> None:
    entry, _ = _ask(clock, result)
    assert entry is not None
    assert (entry.node, entry.outcome) == (node, "wrong")
    assert str(entry.error).startswith(message)
    assert entry.complete_ns == patience_ns + S


def test_open_question_at_the_end_has_no_outcome(clock: _Clock) -> None:
    clock.ends_at_ns = 3 * S
    assert _ask(clock, "no")[0] is None


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
    examiner = Examiner(Environment(), cluster.bootstrap, 3.0, "examiner1", Stop())
    answered = [examiner.ask_until_right(question) for question in questions()]
    assert [each for each in answered if each is None or each.outcome != "right"] == []


@pytest.mark.thorough
def test_client_journals_every_question(cluster: Cluster) -> None:
    written: list[Any] = []
    journal: Any = type("Journal", (), {"write": staticmethod(written.append)})
    spec = spec_of("examiner1", "examiner", questions="1", question_subject="settings")
    spec = msgspec.structs.replace(spec, bootstrap=tuple(cluster.bootstrap))
    ask_questions(spec, journal, _EndedRun())
    assert {entry.subject for entry in written} == {each.about for each in questions("settings")}
    assert {entry.outcome for entry in written} == {"right"}
