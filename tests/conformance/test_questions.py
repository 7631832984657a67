"""Every question to our cluster and to Apache Kafka's; at the end, the lists that go with them."""

from __future__ import annotations

import pytest

from tests.conformance.ledger import Ledger
from tests.conformance.page import PAGE, outdated
from tests.conformance.pair import Pair
from tests.conformance.questions import all_questions
from tests.conformance.questions.registry import Question


@pytest.mark.parametrize("question", all_questions(), ids=str)
def test_same_answer(pair: Pair, ledger: Ledger, question: Question) -> None:
    if lines := ledger.judge(question, pair.ours, pair.theirs):
        pytest.fail("\n".join(lines), pytrace=False)


def test_every_permission_was_needed(ledger: Ledger) -> None:
    """Judges what was asked in this session: an entry all of whose questions were."""
    assert ledger.stale(all_questions()) == []


def test_the_page_tells_the_count(ledger: Ledger) -> None:
    """What does not hang on answers is compared always, the rest for subjects asked whole."""
    lines = outdated(PAGE.read_text(), ledger, all_questions())
    assert not lines, "\n".join(["python -m tests.conformance writes it anew:", *lines])
