"""docs/broker/conformance.md: the count by subject, what may differ, what is not served."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.conformance.ledger import Ledger
from tests.conformance.permitted import DEVIATIONS, OWN, UNANSWERED
from tests.conformance.questions.registry import Question
from urteil.broker.api.registry import SERVED, load_handlers
from urteil.broker.wire.api_keys import ApiKey

PAGE: Final = Path(__file__).parents[2] / "docs" / "broker" / "conformance.md"

OF_ANOTHER_KIND: Final = frozenset(
    key
    for key in ApiKey
    if 52 <= key <= 55 or key in (ApiKey.FETCH_SNAPSHOT, ApiKey.BROKER_REGISTRATION)
    or key in (ApiKey.BROKER_HEARTBEAT, ApiKey.UNREGISTER_BROKER) or key >= 70
)  # fmt: skip
"""APIs of KRaft, telemetry and share groups: Apache Kafka with ZooKeeper serves none of them."""

HEAD: Final = """\
# Conformance

The same questions to our broker and to Apache Kafka 3.9.1 (ZooKeeper mode), over the raw protocol.
Each cluster has three brokers. The answers are compared field by field. Each question is sent at
the lowest, a middle and the highest version of its API, many at every version. `closed` and
`silent` are answers.

    .venv/bin/python -m tests.conformance           # sends everything, writes this page
    .venv/bin/python -m pytest tests/conformance    # the same as tests; a difference is a failure

Both commands start the two clusters. `URTEIL_CONFORMANCE=ours,theirs` uses two standing ones
(`urteil cluster up --name ours`, `urteil cluster up --target kafka --name theirs`). The questions
are in `tests/conformance/questions/`, the permitted differences in
`tests/conformance/permitted.py`. A permitted difference that no longer occurs fails the tests, and
so do wrong numbers on this page.
"""


def subjects(questions: Sequence[Question]) -> dict[str, list[Question]]:
    """The questions by subject, in order of name."""
    subjects: dict[str, list[Question]] = {}
    for question in sorted(questions, key=lambda question: question.subject):
        subjects.setdefault(question.subject, []).append(question)
    return subjects


def rows(ledger: Ledger, questions: Sequence[Question]) -> dict[str, str]:
    """A line of the table a subject."""
    return {subject: _row(subject, ones, ledger) for subject, ones in subjects(questions).items()}


def _row(subject: str, questions: Sequence[Question], ledger: Ledger) -> str:
    pairs = sum(len(question.versions) for question in questions)
    deviating = sum(question in set(questions) for question, _ in ledger.deviating)
    open_ = sum(question in ledger.open for question in questions)
    lowest = min(min(question.versions) for question in questions)
    highest = max(max(question.versions) for question in questions)
    return (
        f"| {subject} | {lowest} to {highest} | {len(questions)} | {pairs} "
        f"| {pairs - deviating} | {deviating} | {open_} |"
    )


def counts(questions: Sequence[Question]) -> str:
    pairs = sum(len(question.versions) for question in questions)
    return f"**{len(questions)} questions, {pairs} with their versions.**"


def remaining(ledger: Ledger) -> str:
    """What remains of differences after everything was asked."""
    return (
        f"**{len(ledger.deviating)} of these answers differ for the reasons below; "
        f"{len(ledger.open)} questions differ without a reason.**"
    )


def permitted_section() -> list[str]:
    """The sections on what may differ."""
    lines = [
        "## Fields that each cluster chooses",
        "",
        "These are compared by presence, or without their order.",
        "",
    ]
    lines += ["| field | subject | why |", "|---|---|---|"]
    lines += [
        f"| `{row.inside or row.field}` | {row.subject.replace('*', 'all')} | {row.why} |"
        for row in OWN
    ]
    lines += ["", "## Different answers", ""]
    lines += [
        "| subject | question | field | Apache Kafka | ours | why |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {row.subject} | {row.question} | `{row.field}` | `{_short(row.theirs)}` "
        f"| `{_short(row.ours)}` | {row.why} |"
        for row in DEVIATIONS
    ]
    lines += ["", "## Not sent: Apache Kafka fails internally and does not answer", ""]
    lines += [f"* {reason}" for reason in UNANSWERED]
    return lines


def _short(text: str) -> str:
    text = text.replace("|", "/")
    return text if len(text) < 60 else f"{text[:57]}..."


def unserved_section() -> list[str]:
    """The section that names what ours does not serve yet."""
    load_handlers()
    names = [api.name for api in ApiKey if api not in SERVED and api not in OF_ANOTHER_KIND]
    return ["## Not served yet", "", ", ".join(names) or "Nothing.", ""]


def page(ledger: Ledger, questions: Sequence[Question]) -> str:
    """The whole page after everything was asked."""
    lines = [HEAD, counts(questions), remaining(ledger), ""]
    lines += ["| subject | versions | questions | with versions | same | otherwise | open |"]
    lines += ["|---|---|---|---|---|---|---|", *rows(ledger, questions).values(), ""]
    lines += [
        "*Otherwise* counts answers that differ for a reason below, *open* counts questions whose",
        "answers differ without one.",
        "",
        *permitted_section(),
        "",
        *unserved_section(),
    ]
    return "\n".join(lines)


def outdated_lines(text: str, ledger: Ledger, questions: Sequence[Question]) -> list[str]:
    """Lines that the page should have and has not: counts and lists always, the row of a subject
    when all its questions were asked."""
    asked = {
        name: all(question in ledger.asked for question in ones)
        for name, ones in subjects(questions).items()
    }
    lines = [counts(questions), *permitted_section(), *unserved_section()]
    lines += [remaining(ledger)] if all(asked.values()) else []
    lines += [row for name, row in rows(ledger, questions).items() if asked[name]]
    have = set(text.splitlines())
    return [line for line in lines if line not in have]
