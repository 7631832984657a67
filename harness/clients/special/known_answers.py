"""Asks brokers what it knows the answer of, and notes what they say.

    python -m urteil.harness.clients.special.known_answers SPEC.json

What is asked are groups, topics and transactions of its own, which nobody else touches: each
question is asked until its answer is right, for ten seconds at most (for twenty where a broker
does not answer, or refuses what has to come before), every time about another one. Two are asked
at a time. `options`: `questions`, how many rounds.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count

from urteil.harness.clients.client_main import Stop, run_client
from urteil.harness.clients.spec import ClientSpec
from urteil.harness.conformance.append_validation import APPENDS
from urteil.harness.conformance.compaction import COMPACTION
from urteil.harness.conformance.compression import CODED
from urteil.harness.conformance.coordinator_handover import TAKEOVERS
from urteil.harness.conformance.fetches import FETCHES
from urteil.harness.conformance.groups import GROUPS
from urteil.harness.conformance.invalid_transaction_requests import ENDINGS
from urteil.harness.conformance.produce_responses import PRODUCING
from urteil.harness.conformance.question import Brokers, Question, Refused
from urteil.harness.conformance.quotas import QUOTAS
from urteil.harness.conformance.reassignments import ADMINISTRATION
from urteil.harness.conformance.rebalances import REBALANCES
from urteil.harness.conformance.records import RECORDS
from urteil.harness.conformance.request_versions import CONNECTIONS
from urteil.harness.conformance.settings import SETTINGS
from urteil.harness.conformance.topics import TOPICS
from urteil.harness.conformance.transactions import TRANSACTIONS
from urteil.harness.evidence.journal import Access, JournalWriter

QUESTIONS: Sequence[Question] = (
    *COMPACTION,
    *CONNECTIONS,
    *GROUPS,
    *REBALANCES,
    *RECORDS,
    *APPENDS,
    *PRODUCING,
    *FETCHES,
    *CODED,
    *TOPICS,
    *ADMINISTRATION,
    *SETTINGS,
    *TRANSACTIONS,
    *ENDINGS,
    *QUOTAS,
    *TAKEOVERS,
)
PATIENCE_NS, LONG_NS = 10_000_000_000, 20_000_000_000
RETRY_S, AT_A_TIME = 0.2, 2
UNANSWERED = (OSError, struct.error)


class Examiner:
    """Asks one question after the other; names are never given twice."""

    def __init__(self, spec: ClientSpec, journal: JournalWriter, stop: Stop) -> None:
        self._spec = spec
        self._journal = journal
        self._stop = stop
        self._numbers = count(1)

    def ask(self, question: Question) -> None:
        """Until it is answered well, or for long enough. What was not over when the run was is not
        noted."""
        invoke_ns = time.monotonic_ns()
        while not self._stop.asked():
            node, told = self._once(question)
            complete_ns = time.monotonic_ns()
            is_right = told == question.answer
            if is_right or complete_ns > invoke_ns + (LONG_NS if node < 0 else PATIENCE_NS):
                outcome = "right" if is_right else "wrong"
                error = None if is_right else f"{told} instead of {question.answer}"
                self._journal.write(
                    Access(invoke_ns, complete_ns, node, question.about, outcome, error)
                )
                return
            self._stop.wait(RETRY_S)

    def _once(self, question: Question) -> tuple[int, str]:
        """Which broker said what; -1 where it did not come to that."""
        name = f"{self._spec.client}-{next(self._numbers)}"
        try:
            timeout_s = self._spec.workload.request_timeout_ms / 1000
            return question.ask(Brokers(self._spec.bootstrap, timeout_s), name)
        except Refused as refusal:
            return -1, str(refusal)
        except UNANSWERED as failure:
            return -1, f"no answer ({type(failure).__name__})"
        except (LookupError, ValueError, TypeError, StopIteration) as lacking:
            return -1, f"an answer that lacks something ({type(lacking).__name__}: {lacking})"


def examine(spec: ClientSpec, journal: JournalWriter, stop: Stop) -> None:
    """So many rounds, then wait for the end."""
    examiner = Examiner(spec, journal, stop)
    for _ in range(int(spec.workload.options["questions"])):
        with ThreadPoolExecutor(AT_A_TIME) as pool:
            list(pool.map(examiner.ask, QUESTIONS))
    while not stop.asked():
        stop.wait(0.2)


if __name__ == "__main__":
    run_client(examine)
