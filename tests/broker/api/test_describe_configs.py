"""DescribeConfigs of a topic whose settings may not be."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tests.broker.api.request_contexts import context
from tests.broker.net.raw import run
from urteil.broker.api.describe_configs import describe_configs
from urteil.broker.config.live_properties import LiveProperties
from urteil.broker.controller.config_administration import TOPIC
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import DescribeConfigsRequest

STANDING = {"bad": {"retention.ms": "a week"}, "good": {"retention.ms": "5"}}


class Configs:
    async def topic_overrides(self, topic: str) -> dict[str, str]:
        return STANDING[topic]


def test_unreadable_settings_fail_only_their_own_resource() -> None:
    broker: Any = SimpleNamespace(
        authorizer=None,
        config=SimpleNamespace(properties=LiveProperties({}), request_timeout_ms=1000),
        controller=SimpleNamespace(configs=Configs()),
        metadata=SimpleNamespace(topics=dict.fromkeys(STANDING)),
    )
    resources = [
        DescribeConfigsRequest.DescribeConfigsResource(
            resource_type=TOPIC, resource_name=name, configuration_keys=["retention.ms"]
        )
        for name in STANDING
    ]

    async def scenario() -> None:
        answer = await describe_configs(
            broker, context(ApiKey.DESCRIBE_CONFIGS, 4), DescribeConfigsRequest(resources=resources)
        )
        bad, good = answer.results
        assert bad.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert "retention.ms" in (bad.error_message or "")
        assert [(config.name, config.value) for config in good.configs] == [("retention.ms", "5")]

    run(scenario())
