"""Questions by subject, each asked at the lowest, a middle and the highest version of its API."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tests.conformance.side import Side
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.messages import REQUESTS
from urteil.broker.wire.schema import Message

QUESTIONS: Final[list[Question]] = []
_NAMES: Final[set[str]] = set()
RUN: Final = os.getpid()


class Asker:
    """Puts one question at one version to one side."""

    def __init__(self, side: Side, question: Question, version: int) -> None:
        self.side, self.version = side, version
        self._prefix = f"q{question.number}v{version}-{RUN}"

    def name(self, kind: str = "topic") -> str:
        """A name of this question and version alone, the same on both sides."""
        return f"{kind}-{self._prefix}"

    def topic(
        self,
        assignment: Sequence[Sequence[int]] = ((1,),),
        configs: Mapping[str, str] | None = None,
        kind: str = "topic",
    ) -> str:
        """A topic of this question's own, made now."""
        return self.side.create(self.name(kind), assignment, configs)

    def ask(self, message: Message, *, to: int = 1) -> Any:
        """The answer in plain data, or CLOSED."""
        return self.side.ask(message, self.version, to=to)

    def ask_controller(self, message: Message) -> Any:
        """The answer of the broker that is controller; waits where that changes just now."""
        answers: list[Any] = []

        def has_answer() -> bool:
            answers[:] = [self.ask(message, to=self.side.controller())]
            return "NOT_CONTROLLER" not in str(answers)

        self.side.until(has_answer)
        return answers[0]


Ask = Callable[[Asker], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked of both sides; the answers, whatever `ask` returns, are compared."""

    subject: str
    text: str
    versions: tuple[int, ...]
    ask: Ask
    number: int

    def __str__(self) -> str:
        return f"{self.subject}: {self.text}"


class Subject:
    """A group of questions about one API, or about the protocol where there is none."""

    def __init__(self, name: str, api: ApiKey | None = None) -> None:
        self.name = name
        self._range = (0, 0) if api is None else _versions(api)

    def question(
        self,
        text: str,
        *,
        since: int = 0,
        until: int = 1 << 15,
        versions: Iterable[int] | None = None,
    ) -> Callable[[Ask], Ask]:
        """Register a function as a question; `since` and `until` narrow the API's versions."""

        def register(ask: Ask) -> Ask:
            chosen = spread(max(since, self._range[0]), min(until, self._range[1]))
            self._add(text, tuple(versions) if versions is not None else chosen, ask)
            return ask

        return register

    def each(
        self,
        text: str,
        cases: Mapping[str, Any],
        *,
        since: int = 0,
        until: int = 1 << 15,
        versions: Iterable[int] | None = None,
    ) -> Callable[[Callable[[Asker, Any], Any]], Callable[[Asker, Any], Any]]:
        """Register a function as a question for each case, which it is given."""
        given = None if versions is None else tuple(versions)

        def register(ask: Callable[[Asker, Any], Any]) -> Callable[[Asker, Any], Any]:
            for label, case in cases.items():
                add = self.question(f"{text}: {label}", since=since, until=until, versions=given)
                add(lambda asker, case=case: ask(asker, case))  # type: ignore[misc]
            return ask

        return register

    def _add(self, text: str, versions: tuple[int, ...], ask: Ask) -> None:
        number = len(QUESTIONS)
        question = Question(subject=self.name, text=text, versions=versions, ask=ask, number=number)
        if str(question) in _NAMES:
            raise ValueError(f"asked twice: {question}")
        _NAMES.add(str(question))
        QUESTIONS.append(question)


def spread(lowest: int, highest: int) -> tuple[int, ...]:
    """The lowest, a middle and the highest version, as far as they are different."""
    return tuple(sorted({lowest, (lowest + highest + 1) // 2, highest}))


def _versions(api: ApiKey) -> tuple[int, int]:
    request = REQUESTS[api]
    return request.MIN_VERSION, request.MAX_VERSION
