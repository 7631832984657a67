"""Sends questions with known answers to brokers, and journals the answers.

    python -m urteil.harness.clients.special.known_answers SPEC.json

The questions use groups, topics and transactions of their own, and are put by an `Examiner`.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Literal

from msgspec import Meta

from urteil.chaos.capabilities import LARGEST_TIMESTAMP, TRANSACTION_LISTS
from urteil.harness.clients.client_main import run_client
from urteil.harness.clients.kind import ClientKind, Stage
from urteil.harness.clients.options import WorkloadOptions
from urteil.harness.clients.spec import ClientSpec
from urteil.harness.clients.stop import Stop
from urteil.harness.conformance.environment import Environment
from urteil.harness.conformance.examiner import PARALLEL, Examiner
from urteil.harness.conformance.question import Question
from urteil.harness.evidence.journal import Access, JournalWriter

Subject = Literal["all", "administration", "topics", "settings", "replicas"]


class QuestionOptions(WorkloadOptions, frozen=True):
    """Options of this client."""

    questions: Annotated[
        int,
        Meta(ge=0, le=100_000, description="The number of rounds of questions with known answers."),
    ] = 0
    question_subject: Annotated[
        Subject, Meta(description="The subject of the questions with known answers.")
    ] = "all"


def questions(subject: Subject = "all") -> Sequence[Question]:
    """The questions of a subject. Imported here: the lab reads this module's declaration before
    each run, and the questions import every message of kafka-python."""
    from urteil.harness.conformance.catalogue import SUBJECTS

    return SUBJECTS[subject]


def ask_questions(spec: ClientSpec, journal: JournalWriter, stop: Stop) -> None:
    """Run the rounds, then wait for the stop. A question that is open then is not journaled."""
    options = QuestionOptions.of(spec.workload)
    examiner = Examiner(
        Environment(), spec.bootstrap, spec.workload.request_timeout_ms / 1000,
        spec.client, stop,
    )  # fmt: skip

    def ask(question: Question) -> None:
        if (answered := examiner.ask_until_right(question)) is not None:
            journal.write(Access(*answered))

    for _ in range(options.questions):
        with ThreadPoolExecutor(PARALLEL) as pool:
            list(pool.map(ask, questions(options.question_subject)))
    stop.wait_until_set()


KIND = ClientKind(
    name="examiner",
    about="Sends questions with known answers to brokers, and journals the answers.",
    needs=lambda _: (LARGEST_TIMESTAMP, TRANSACTION_LISTS),
    stage=Stage.LOAD,
    judged_by=("wrong_answer",),
    prefix="examiner",
    count=lambda scenario: int(QuestionOptions.of(scenario.workload).questions > 0),
    work=ask_questions,
    options=(QuestionOptions,),
)

if __name__ == "__main__":
    run_client(KIND)
