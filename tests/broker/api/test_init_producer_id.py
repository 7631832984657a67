"""InitProducerId while the controller gives no ids."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from tests.broker.api.request_contexts import context
from tests.broker.net.raw import run
from urteil.broker.api import init_producer_id
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import InitProducerIdRequest


class Silent:
    """A source of producer ids that never answers."""

    async def next_id(self) -> int:
        await asyncio.Event().wait()
        return 0


def test_silent_controller_does_not_delay_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(init_producer_id, "BLOCK_TIMEOUT_S", 0.05, raising=False)
    broker: Any = SimpleNamespace(authorizer=None, producer_ids=Silent())
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)

    async def scenario() -> None:
        async with asyncio.timeout(5):
            answer = await init_producer_id.init_producer_id(
                broker, context(ApiKey.INIT_PRODUCER_ID, 4), request
            )
        assert answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert (answer.producer_id, answer.producer_epoch) == (-1, -1)

    run(scenario())
