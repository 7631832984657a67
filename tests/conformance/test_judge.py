"""The judge itself, on answers made up: what it finds, excuses and counts."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from tests.conformance.differences import differences
from tests.conformance.ledger import Ledger
from tests.conformance.malformed import body, length, paths, sample
from tests.conformance.page import outdated_lines, page
from tests.conformance.permitted import excuse
from tests.conformance.questions.registry import Question, spread
from urteil.broker.wire.messages import REQUESTS
from urteil.broker.wire.primitives import WireError


def question_of(subject: str, text: str, *versions: int) -> Question:
    """A question whose sides are tables of answers by version."""

    def ask(asker: Any) -> Any:
        return asker.side[asker.version]

    return Question(subject=subject, text=text, versions=versions, ask=ask, number=0)


def found_differences(expected: Any, answered: Any) -> list[tuple[str, Any, Any]]:
    return [
        (difference.where, difference.expected, difference.answered)
        for difference in differences(expected, answered)
    ]


def test_every_field_is_compared() -> None:
    answer = {"topics": [{"name": "a", "error": 3}, {"name": "b", "error": 0}], "all": 1}
    other = {"topics": [{"name": "b", "error": 5}, {"name": "a", "error": 3}], "all": 1}
    assert found_differences(answer, answer) == []
    assert found_differences(answer, other) == [
        ("topics[b].error", 0, 5),
        ("topics.order", ["a", "b"], ["b", "a"]),
    ]
    assert [difference[0] for difference in found_differences([1, 2], [1, 3])] == ["[1]"]
    assert [difference[0] for difference in found_differences([1, 2], [1])] == [""]
    assert [difference[0] for difference in found_differences({"a": None}, {})] == ["a"]
    assert [difference[0] for difference in found_differences("closed", {"a": 1})] == [""]


def test_own_values_are_required_on_both_sides() -> None:
    question = question_of("Metadata", "anything", 0)
    (ids,) = differences({"topic_id": uuid4()}, {"topic_id": uuid4()})
    assert excuse(question, ids) is not None
    (lacking,) = differences({"host": "127.0.0.1"}, {"host": ""})
    assert excuse(question, lacking) is None
    (error,) = differences({"error_code": "NONE"}, {"error_code": "UNKNOWN_SERVER_ERROR"})
    assert excuse(question, error) is None


def test_deviation_permits_its_question_and_answers_alone() -> None:
    theirs, ours = {"error_code": "UNKNOWN_SERVER_ERROR"}, {"error_code": "BROKER_NOT_AVAILABLE"}
    (difference,) = differences({"code": theirs["error_code"]}, {"code": ours["error_code"]})
    assert excuse(question_of("Bodies", "CONTROLLED_SHUTDOWN: too long", 0), difference) is None
    (difference,) = differences(theirs, ours)
    assert excuse(question_of("Bodies", "CONTROLLED_SHUTDOWN: too long", 0), difference) is not None
    assert excuse(question_of("Bodies", "FETCH: too long", 0), difference) is None
    (difference,) = differences(theirs, {"error_code": "NONE"})
    assert excuse(question_of("Bodies", "CONTROLLED_SHUTDOWN: too long", 0), difference) is None


def test_difference_fails_and_is_counted() -> None:
    ledger, question = Ledger(), question_of("Metadata", "anything", 0, 6)
    theirs: Any = {0: {"error_code": "NONE"}, 6: {"port": 9092}}
    ours: Any = {0: {"error_code": "INVALID_REQUEST"}, 6: {"port": 9093}}
    (line,) = ledger.judge(question, ours, theirs)
    assert "[0]" in line
    assert "'NONE' expected, 'INVALID_REQUEST' answered" in line
    assert ledger.open == {question: [line]}
    assert ledger.summary().startswith("1 questions, 2 with their versions")
    assert [excuse.field for excuse in ledger.excused] == ["port"]
    stale = {getattr(excuse, "field", None) for excuse in ledger.stale([question])}
    assert "host" in stale
    assert "port" not in stale
    assert ledger.stale([question, question_of("Metadata", "another", 0)]) == []


def test_failure_of_both_sides_is_a_difference() -> None:
    ledger, question = Ledger(), question_of("Metadata", "anything", 3)
    assert ledger.judge(question, {}, {})  # type: ignore[arg-type]


def test_page_with_wrong_numbers_is_rejected() -> None:
    ledger, question = Ledger(), question_of("Metadata", "anything", 0)
    same: Any = {0: "closed"}
    assert ledger.judge(question, same, same) == []
    written = page(ledger, [question])
    assert outdated_lines(written, ledger, [question]) == []
    more = [question, question_of("Metadata", "another", 0)]
    assert any("2 questions" in line for line in outdated_lines(written, ledger, more))


@pytest.mark.parametrize("key", sorted(REQUESTS))
def test_handwritten_bodies_are_decoded_to_their_end(key: int) -> None:
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
