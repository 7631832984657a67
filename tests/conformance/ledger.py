"""What was asked, what was answered otherwise, and which entries of `permitted` excused it."""

from __future__ import annotations

import traceback
from collections import Counter, defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.conformance.differences import differences
from tests.conformance.permitted import DEVIATIONS, OWN, Deviation, Permitted, excuse
from tests.conformance.questions.registry import Asker, Question
from tests.conformance.side import Side


class Failed:
    """An answer that could not be had: equal to none, not even to the other side's failure."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __repr__(self) -> str:
        place = traceback.extract_tb(self._error.__traceback__)[-1]
        return f"<{self._error!r} at {place.filename}:{place.lineno}>"


class Ledger:
    """Puts questions to our cluster and to Apache Kafka's, and keeps the count."""

    def __init__(self) -> None:
        self.asked: dict[Question, set[int]] = defaultdict(set)
        self.deviating: set[tuple[Question, int]] = set()
        self.open: dict[Question, list[str]] = {}
        self.excused: Counter[Permitted] = Counter()
        self.further = 0  # comparisons in tests of their own
        self._pool = ThreadPoolExecutor(2)

    def judge(self, question: Question, ours: Side, theirs: Side) -> list[str]:
        """Ask at every version; the differences that nothing permits, a line each."""
        versions: dict[str, list[int]] = defaultdict(list)
        for version in question.versions:
            for line in self._judge_version(question, version, ours, theirs):
                versions[line].append(version)
        lines = [f"versions {at}: {line}" for line, at in versions.items()]
        if lines:
            self.open[question] = lines
        return lines

    def _judge_version(
        self, question: Question, version: int, ours: Side, theirs: Side
    ) -> list[str]:
        sides = (Asker(theirs, question, version), Asker(ours, question, version))
        waiting = [self._pool.submit(question.ask, side) for side in sides]
        expected, answered = (self._result(answer) for answer in waiting)
        self.asked[question].add(version)
        left = []
        for difference in differences(expected, answered):
            entry = excuse(question, difference)
            if entry is None:
                left.append(str(difference))
                continue
            self.excused[entry] += 1
            if isinstance(entry, Deviation):
                self.deviating.add((question, version))
        return left

    def _result(self, waiting: Any) -> Any:
        try:
            return waiting.result()
        except Exception as error:  # the other side's answer is shown too
            return Failed(error)

    def stale(self, questions: Sequence[Question]) -> list[Permitted]:
        """Entries that excused nothing though all their questions were asked."""
        entries: list[Permitted] = [*OWN, *DEVIATIONS]
        return [
            entry
            for entry in entries
            if not self.excused[entry]
            and not getattr(entry, "by_chance", False)
            and all(question in self.asked for question in questions)
        ]

    def summary(self) -> str:
        """The count in a line."""
        pairs = sum(map(len, self.asked.values()))
        return (
            f"{len(self.asked)} questions, {pairs} with their versions: {len(self.deviating)} "
            f"answered otherwise for a reason given, {len(self.open)} questions differ; "
            f"{self.further} more answers compared in scenarios"
        )
