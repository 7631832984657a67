"""APIs that a broker with ZooKeeper advertises, and that are of use in other modes only."""

from __future__ import annotations

from typing import Any

from tests.conformance.questions.registry import Asker, Subject
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    EnvelopeRequest,
    UpdateFeaturesRequest,
)

FEATURES = Subject("UpdateFeatures", ApiKey.UPDATE_FEATURES)
ENVELOPE = Subject("Envelope", ApiKey.ENVELOPE)
HEARTBEAT = Subject("ConsumerGroupHeartbeat", ApiKey.CONSUMER_GROUP_HEARTBEAT)
DESCRIBE = Subject("ConsumerGroupDescribe", ApiKey.CONSUMER_GROUP_DESCRIBE)


def update(name: str, level: int, **more: Any) -> UpdateFeaturesRequest.FeatureUpdateKey:
    return UpdateFeaturesRequest.FeatureUpdateKey(feature=name, max_version_level=level, **more)


UPDATES = {
    "nothing": [],
    "an unknown feature": [update("nonsense", 1)],
    "a KRaft feature": [update("metadata.version", 20)],
    "a feature by an empty name": [update("", 1)],
    "two": [update("nonsense", 1), update("group.version", 1)],
    "level 0 of an unknown one": [update("nonsense", 0)],
    "a downgrade of an unknown one": [
        update("nonsense", 0, allow_downgrade=True, upgrade_type=3),
    ],
    "a downgrade to level 2 of an unknown one": [
        update("nonsense", 2, allow_downgrade=True, upgrade_type=2),
    ],
    "a kind of update that is none": [update("nonsense", 1, upgrade_type=9)],
    "an unknown one twice": [update("nonsense", 1), update("nonsense", 2)],
    "a level below 0": [update("nonsense", -1)],
}


@FEATURES.each("of", UPDATES)
def features(asker: Asker, updates: list[UpdateFeaturesRequest.FeatureUpdateKey]) -> Any:
    request = UpdateFeaturesRequest(feature_updates=updates, timeout_ms=3000)
    at = asker.side.controller()
    return [asker.ask(request, to=at), asker.ask(request, to=at % 3 + 1)]


@FEATURES.question("only to be checked", since=1)
def features_checked(asker: Asker) -> Any:
    request = UpdateFeaturesRequest(feature_updates=[update("nonsense", 1)], validate_only=True)
    return asker.ask_controller(request)


@ENVELOPE.question("with a request, and with nothing")
def envelope(asker: Asker) -> Any:
    return [
        asker.ask(EnvelopeRequest(request_data=data, client_host_address=b"\x7f\0\0\1"))
        for data in (b"", b"\0\x12\0\0\0\0\0\1\0\0")
    ]


@HEARTBEAT.question("of a new member, and of an old one")
def heartbeat(asker: Asker) -> Any:
    group = asker.name("group")
    joining = ConsumerGroupHeartbeatRequest(
        group_id=group, rebalance_timeout_ms=1000, subscribed_topic_names=["t"], topic_partitions=[]
    )
    return [
        asker.ask(joining),
        asker.ask(ConsumerGroupHeartbeatRequest(group_id=group, member_id="m", member_epoch=3)),
        asker.ask(ConsumerGroupHeartbeatRequest()),
    ]


@DESCRIBE.question("none, two, one twice")
def describe(asker: Asker) -> Any:
    return [
        asker.ask(
            ConsumerGroupDescribeRequest(group_ids=groups, include_authorized_operations=True)
        )
        for groups in ([], ["a", "b"], ["a", "a"], [""])
    ]
