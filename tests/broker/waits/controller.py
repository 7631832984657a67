"""The controller of a cluster of one broker."""

from __future__ import annotations

from tests.broker.waits.bystander import Client
from tests.waiting import until
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import DeleteTopicsRequest, DeleteTopicsResponse


def wait_for_controller(port: int) -> None:
    """Wait until the broker answers as controller: it does so some time after its registration."""
    request = DeleteTopicsRequest(topic_names=["absent"], timeout_ms=1_000)
    with Client(port) as client:

        def answers() -> bool:
            answer = client.ask(ApiKey.DELETE_TOPICS, 4, request)
            assert isinstance(answer, DeleteTopicsResponse)
            return answer.responses[0].error_code != ErrorCode.NOT_CONTROLLER

        until(answers, "the broker answers as controller")
