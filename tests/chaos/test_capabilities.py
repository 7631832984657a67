"""Capabilities by the API versions that brokers serve."""

from __future__ import annotations

from urteil.chaos.capabilities import (
    CAPABILITIES,
    CONSUMER_PROTOCOL,
    ELECTIONS,
    IDEMPOTENCE,
    SHARE_GROUPS,
    TOPIC_IDS,
    describe_missing,
    missing_capabilities,
)

V0_10_2 = {0: 2, 1: 3, 2: 1, 3: 2, 6: 3, 11: 1}
"""Of 0.10.2.2: the highest versions of the APIs in which later releases have newer ones."""
V3_9 = {
    0: 11, 1: 17, 2: 9, 3: 12, 6: 8, 11: 9, 21: 2, 22: 5, 23: 4, 24: 5, 28: 4, 33: 2, 34: 2, 37: 3,
    43: 2, 44: 1, 45: 0, 47: 0, 49: 1, 56: 3, 66: 1, 68: 0,
}  # fmt: skip
V4_4 = {**V3_9, 68: 1, 78: 2}


def test_the_newest_release_lacks_nothing() -> None:
    assert missing_capabilities(V4_4) == []


def test_release_before_4_lacks_the_advertised_consumer_protocol() -> None:
    assert missing_capabilities(V3_9) == [CONSUMER_PROTOCOL.name, SHARE_GROUPS.name]


def test_the_oldest_release_lacks_every_capability() -> None:
    assert missing_capabilities(V0_10_2) == list(CAPABILITIES)


def test_capability_is_missing_in_a_version_below_its_own() -> None:
    assert missing_capabilities({**V4_4, 43: 0, 3: 9}) == [ELECTIONS.name, TOPIC_IDS.name]


def test_capabilities_are_listed_by_release() -> None:
    since = [tuple(map(int, capability.since.split("."))) for capability in CAPABILITIES.values()]
    assert since == sorted(since)


def test_missing_capabilities_are_described_with_request_and_release() -> None:
    lacks = [IDEMPOTENCE.name]
    assert describe_missing((TOPIC_IDS,), lacks) == ""
    assert describe_missing((TOPIC_IDS, IDEMPOTENCE), lacks) == (
        "the brokers lack idempotence (InitProducerId 0, since 0.11.0)"
    )
