"""Producer ids from blocks of the controller."""

from __future__ import annotations

from collections.abc import Sequence

from tests.broker.net.raw import run
from urteil.broker.transactions.producer_ids import ProducerIds


class Controllers:
    """Answers with what it is given, in turn; an exception is raised."""

    def __init__(self, answers: Sequence[tuple[int, int] | Exception]) -> None:
        self.answers = list(answers)

    async def ask(self) -> tuple[int, int]:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_producer_ids_come_from_consecutive_blocks() -> None:
    async def scenario() -> None:
        controllers = Controllers(
            [ConnectionError("NOT_CONTROLLER"), (0, 1), TimeoutError(), (5000, 5001), (7000, 7999)]
        )
        ids = ProducerIds(controllers.ask)
        assert [await ids.next_id() for _ in range(5)] == [0, 1, 5000, 5001, 7000]

    run(scenario())
