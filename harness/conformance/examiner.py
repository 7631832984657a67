"""Puts questions to brokers until the answers are right or the time is over.

A question is repeated with other names: for at most ten seconds, or twenty if a broker does not
respond or rejects a precondition.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import count
from typing import NamedTuple

from urteil.chaos.waiting import Stop
from urteil.harness.conformance.environment import Environment
from urteil.harness.conformance.question import Brokers, PreconditionFailed, Question

PATIENCE_NS, LONG_NS = 10_000_000_000, 20_000_000_000
RETRY_S = 0.2
PARALLEL = 2
"""So many questions run at a time."""
UNANSWERED = (OSError, struct.error)


class Answered(NamedTuple):
    """The end of a question: `right`, or `wrong` with an error. `node` is the broker that answered;
    -1 if the question could not be completed."""

    invoke_ns: int
    complete_ns: int
    node: int
    subject: str
    outcome: str
    error: str | None


class Examiner:
    """No question gets a name twice: each is `prefix` and a number."""

    def __init__(
        self,
        environment: Environment,
        addresses: Sequence[str],
        timeout_s: float,
        prefix: str,
        stop: Stop,
    ) -> None:
        self._environment = environment
        self._addresses, self._timeout_s = addresses, timeout_s
        self._prefix, self._stop = prefix, stop
        self._numbers = count(1)

    def ask_until_right(self, question: Question) -> Answered | None:
        """Repeat the question until its answer is right or the time is over. None if the stop was
        set before."""
        invoke_ns = self._environment.monotonic_ns()
        while not self._stop.is_set():
            node, answer = self._answer_question(question)
            complete_ns = self._environment.monotonic_ns()
            is_right = answer == question.answer
            if is_right or complete_ns > invoke_ns + (LONG_NS if node < 0 else PATIENCE_NS):
                outcome = "right" if is_right else "wrong"
                error = None if is_right else f"{answer} instead of {question.answer}"
                return Answered(invoke_ns, complete_ns, node, question.about, outcome, error)
            self._stop.wait(RETRY_S)
        return None

    def _answer_question(self, question: Question) -> tuple[int, str]:
        """Returns the broker and its answer; -1 if the question could not be completed."""
        name = f"{self._prefix}-{next(self._numbers)}"
        try:
            brokers = Brokers(self._addresses, self._timeout_s, self._environment)
            return question.ask(brokers, name)
        except PreconditionFailed as refusal:
            return -1, str(refusal)
        except UNANSWERED as failure:
            return -1, f"no answer ({type(failure).__name__})"
        except (LookupError, ValueError, TypeError, StopIteration) as lacking:
            return -1, f"an answer that lacks something ({type(lacking).__name__}: {lacking})"
