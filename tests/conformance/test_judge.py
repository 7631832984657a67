"""The judge itself, on answers made up: what it finds, excuses and counts."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from tests.conformance.differences import differences
from tests.conformance.ledger import Ledger
from tests.conformance.malformed import body, length, paths, sample
from tests.conformance.page import outdated, page
from tests.conformance.permitted import excuse
from tests.conformance.questions.registry import Question, spread
from urteil.broker.wire.messages import REQUESTS
from urteil.broker.wire.primitives import WireError


def asking(subject: str, text: str, *versions: int) -> Question:
    """A question whose sides are tables of answers by version."""

    def ask(it: Any) -> Any:
        return it.side[it.version]

    return Question(subject=subject, text=text, versions=versions, ask=ask, number=0)


def found(expected: Any, answered: Any) -> list[tuple[str, Any, Any]]:
    return [(one.where, one.expected, one.answered) for one in differences(expected, answered)]


def test_every_field_is_looked_at() -> None:
    answer = {"topics": [{"name": "a", "error": 3}, {"name": "b", "error": 0}], "all": 1}
    other = {"topics": [{"name": "b", "error": 5}, {"name": "a", "error": 3}], "all": 1}
    assert found(answer, answer) == []
    assert found(answer, other) == [
        ("topics[b].error", 0, 5),
        ("topics.order", ["a", "b"], ["b", "a"]),
    ]
    assert [one[0] for one in found([1, 2], [1, 3])] == ["[1]"]
    assert [one[0] for one in found([1, 2], [1])] == [""]
    assert [one[0] for one in found({"a": None}, {})] == ["a"]
    assert [one[0] for one in found("closed", {"a": 1})] == [""]


def test_own_values_must_be_there_on_both_sides() -> None:
    question = asking("Metadata", "anything", 0)
    (ids,) = differences({"topic_id": uuid4()}, {"topic_id": uuid4()})
    assert excuse(question, ids) is not None
    (lacking,) = differences({"host": "127.0.0.1"}, {"host": ""})
    assert excuse(question, lacking) is None
    (error,) = differences({"error_code": "NONE"}, {"error_code": "UNKNOWN_SERVER_ERROR"})
    assert excuse(question, error) is None


def test_a_deviation_is_for_its_question_and_its_answers_alone() -> None:
    theirs, ours = {"error_code": "UNKNOWN_SERVER_ERROR"}, {"error_code": "BROKER_NOT_AVAILABLE"}
    (one,) = differences({"code": theirs["error_code"]}, {"code": ours["error_code"]})
    assert excuse(asking("Bodies", "CONTROLLED_SHUTDOWN: too long", 0), one) is None
    (one,) = differences(theirs, ours)
    assert excuse(asking("Bodies", "CONTROLLED_SHUTDOWN: too long", 0), one) is not None
    assert excuse(asking("Bodies", "FETCH: too long", 0), one) is None
    (one,) = differences(theirs, {"error_code": "NONE"})
    assert excuse(asking("Bodies", "CONTROLLED_SHUTDOWN: too long", 0), one) is None


def test_what_differs_fails_and_is_counted() -> None:
    ledger, question = Ledger(), asking("Metadata", "anything", 0, 6)
    theirs: Any = {0: {"error_code": "NONE"}, 6: {"port": 9092}}
    ours: Any = {0: {"error_code": "INVALID_REQUEST"}, 6: {"port": 9093}}
    (line,) = ledger.judge(question, ours, theirs)
    assert "[0]" in line
    assert "'NONE' expected, 'INVALID_REQUEST' answered" in line
    assert ledger.open == {question: [line]}
    assert ledger.summary().startswith("1 questions, 2 with their versions")
    assert [one.field for one in ledger.excused] == ["port"]
    stale = {getattr(one, "field", None) for one in ledger.stale([question])}
    assert "host" in stale
    assert "port" not in stale
    assert ledger.stale([question, asking("Metadata", "another", 0)]) == []


def test_a_side_that_fails_is_a_difference_even_when_both_do() -> None:
    ledger, question = Ledger(), asking("Metadata", "anything", 3)
    assert ledger.judge(question, {}, {})  # type: ignore[arg-type]


def test_the_page_is_held_to_its_numbers() -> None:
    ledger, question = Ledger(), asking("Metadata", "anything", 0)
    same: Any = {0: "closed"}
    assert ledger.judge(question, same, same) == []
    written = page(ledger, [question])
    assert outdated(written, ledger, [question]) == []
    more = [question, asking("Metadata", "another", 0)]
    assert any("2 questions" in line for line in outdated(written, ledger, more))


@pytest.mark.parametrize("key", sorted(REQUESTS))
def test_bodies_written_by_hand_are_what_the_broker_reads(key: int) -> None:
    """Sound ones are read to their end, and null where none may be is refused."""
    message = REQUESTS[key]
    for version in spread(message.MIN_VERSION, message.MAX_VERSION):
        values = sample(message, version, times=2)
        data = body(message, version, values)
        read, end = message.decode(version, data)
        assert end == len(data)
        assert b"".join(read.encode(version)) == data
        for path, spec in paths(message, version):
            if (spec.is_array or spec.element == "string") and version not in spec.nullable:
                spoilt = {path: length(message, version, spec, -1)}
                with pytest.raises(WireError):
                    message.decode(version, body(message, version, values, spoilt=spoilt))
