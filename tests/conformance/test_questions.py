"""Every question to our cluster and to Apache Kafka's; at the end, the lists that go with them."""

from __future__ import annotations

import pytest

from tests.conformance.ledger import Ledger
from tests.conformance.page import PAGE, outdated_lines
from tests.conformance.pair import Pair
from tests.conformance.questions import all_questions
from tests.conformance.questions.registry import Question


@pytest.mark.parametrize("question", all_questions(), ids=str)
def test_question_is_answered_alike(pair: Pair, ledger: Ledger, question: Question) -> None:
    if lines := ledger.judge(question, pair.ours, pair.theirs):
        pytest.fail("\n".join(lines), pytrace=False)


def test_every_permitted_difference_occurs(ledger: Ledger) -> None:
    """Judges what was asked in this session: an entry all of whose questions were."""
    assert ledger.stale(all_questions()) == []


def test_page_states_the_numbers_of_questions(ledger: Ledger) -> None:
    """What does not hang on answers is compared always, the rest for subjects asked whole."""
    lines = outdated_lines(PAGE.read_text(), ledger, all_questions())
    assert not lines, "\n".join(["python -m tests.conformance writes it anew:", *lines])
