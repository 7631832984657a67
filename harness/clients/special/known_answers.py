"""Sends questions with known answers to brokers, and journals the answers.

    python -m urteil.harness.clients.special.known_answers SPEC.json

The questions use groups, topics and transactions of their own. Each question is repeated, with
other names, until its answer is right: for at most ten seconds, or twenty if a broker does not
respond or rejects a precondition. Two questions run at a time.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Annotated, Literal

from msgspec import Meta

from urteil.chaos.capabilities import LARGEST_TIMESTAMP, TRANSACTION_LISTS
from urteil.harness.clients.client_main import run_client
from urteil.harness.clients.kind import ClientKind, Stage
from urteil.harness.clients.options import WorkloadOptions
from urteil.harness.clients.spec import ClientSpec
from urteil.harness.clients.stop import Stop
from urteil.harness.conformance.question import Brokers, PreconditionFailed, Question
from urteil.harness.evidence.journal import Access, JournalWriter

PATIENCE_NS, LONG_NS = 10_000_000_000, 20_000_000_000
RETRY_S, PARALLEL = 0.2, 2
UNANSWERED = (OSError, struct.error)
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


class KnownAnswers:
    """Runs one question after another. No name is used twice."""

    def __init__(self, spec: ClientSpec, journal: JournalWriter, stop: Stop) -> None:
        self._spec = spec
        self._journal = journal
        self._stop = stop
        self._numbers = count(1)

    def ask_until_right(self, question: Question) -> None:
        """Repeat the question until its answer is right or the time is over. A question that is
        open at the end of the run is not journaled."""
        invoke_ns = time.monotonic_ns()
        while not self._stop.is_set():
            node, answer = self._answer_question(question)
            complete_ns = time.monotonic_ns()
            is_right = answer == question.answer
            if is_right or complete_ns > invoke_ns + (LONG_NS if node < 0 else PATIENCE_NS):
                outcome = "right" if is_right else "wrong"
                error = None if is_right else f"{answer} instead of {question.answer}"
                self._journal.write(
                    Access(invoke_ns, complete_ns, node, question.about, outcome, error)
                )
                return
            self._stop.wait(RETRY_S)

    def _answer_question(self, question: Question) -> tuple[int, str]:
        """Returns the broker and its answer; -1 if the question could not be completed."""
        name = f"{self._spec.client}-{next(self._numbers)}"
        try:
            timeout_s = self._spec.workload.request_timeout_ms / 1000
            return question.ask(Brokers(self._spec.bootstrap, timeout_s), name)
        except PreconditionFailed as refusal:
            return -1, str(refusal)
        except UNANSWERED as failure:
            return -1, f"no answer ({type(failure).__name__})"
        except (LookupError, ValueError, TypeError, StopIteration) as lacking:
            return -1, f"an answer that lacks something ({type(lacking).__name__}: {lacking})"


def subjects() -> Mapping[Subject, Sequence[Question]]:
    """The questions of each subject. Imported here: the lab reads this module's declaration before
    each run, and the questions import every message of kafka-python."""
    from urteil.harness.conformance.append_validation import APPENDS
    from urteil.harness.conformance.compaction import COMPACTION
    from urteil.harness.conformance.compression import CODED
    from urteil.harness.conformance.coordinator_handover import TAKEOVERS
    from urteil.harness.conformance.fetches import FETCHES
    from urteil.harness.conformance.groups import GROUPS
    from urteil.harness.conformance.invalid_transaction_requests import ENDINGS
    from urteil.harness.conformance.produce_responses import PRODUCING
    from urteil.harness.conformance.quotas import QUOTAS
    from urteil.harness.conformance.reassignments import REASSIGNMENTS
    from urteil.harness.conformance.rebalances import REBALANCES
    from urteil.harness.conformance.records import DELETIONS, RECORDS
    from urteil.harness.conformance.request_versions import CONNECTIONS
    from urteil.harness.conformance.settings import SETTINGS
    from urteil.harness.conformance.topics import TOPICS
    from urteil.harness.conformance.transactions import TRANSACTIONS

    replicas = *REASSIGNMENTS, *DELETIONS
    administration = *TOPICS, *SETTINGS, *replicas
    return {
        "topics": TOPICS,
        "settings": SETTINGS,
        "replicas": replicas,
        "administration": administration,
        "all": (
            *COMPACTION,
            *CONNECTIONS,
            *GROUPS,
            *REBALANCES,
            *RECORDS,
            *APPENDS,
            *PRODUCING,
            *FETCHES,
            *CODED,
            *administration,
            *TRANSACTIONS,
            *ENDINGS,
            *QUOTAS,
            *TAKEOVERS,
        ),
    }


def questions(subject: Subject = "all") -> Sequence[Question]:
    return subjects()[subject]


def ask_questions(spec: ClientSpec, journal: JournalWriter, stop: Stop) -> None:
    """Run the rounds, then wait for the stop."""
    client, options = KnownAnswers(spec, journal, stop), QuestionOptions.of(spec.workload)
    for _ in range(options.questions):
        with ThreadPoolExecutor(PARALLEL) as pool:
            list(pool.map(client.ask_until_right, questions(options.question_subject)))
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
