"""Settings of readers and members by workload options: racks, sizes of fetches, group settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Consumer
from msgspec.structs import replace

from tests.harness.clients.specs import spec_of
from urteil.harness.clients.consumers.consumer import reader_config
from urteil.harness.clients.consumers.group_consumer import member_config
from urteil.harness.clients.libraries import confluent_consumer
from urteil.harness.clients.spec import ClientSpec


@pytest.mark.parametrize(
    ("client", "racks", "rack"),
    [
        ("c2", "1", "rack2"),
        ("c2.3", "1", "rack2"),  # its third session
        ("c2", "0", None),
    ],
)
def test_racks_of_readers(client: str, racks: str, rack: str | None) -> None:
    spec = spec_of(client, "consumer", racks=racks)
    assert reader_config(spec).get("client_rack") == rack


@pytest.mark.parametrize(
    ("kind", "config"), [("consumer", reader_config), ("group", member_config)]
)
def test_fetch_sizes_of_readers(kind: str, config: Callable[[ClientSpec], dict[str, Any]]) -> None:
    sizes = [config(spec_of("c1", kind, fetch_bytes=text)) for text in ("1024", "512")]
    assert [size["fetch_max_bytes"] for size in sizes] == [1024, 512]
    assert "fetch_max_bytes" not in config(spec_of("c1", kind))


def test_settings_of_members() -> None:
    spec = spec_of("g2.2", "group", session_timeout_ms="4000", max_poll_records="7", static="1")
    config = member_config(spec)
    assert (config["session_timeout_ms"], config["max_poll_records"]) == (4000, 7)
    assert config["group_instance_id"] == spec.instance == "urteil-group-g2"
    assert member_config(spec_of("g2", "group"))["group_instance_id"] is None


def test_session_timeout_of_librdkafka_is_not_above_the_poll_interval() -> None:
    spec = spec_of("g1", "group", session_timeout_ms="6000", max_poll_interval_ms="5000")
    config = confluent_consumer.member_config(spec)
    assert (config["session.timeout.ms"], config["max.poll.interval.ms"]) == (5000, 5000)


@pytest.mark.parametrize(
    ("options", "assignor"), [({}, None), ({"remote_assignor": "range"}, "range")]
)
def test_brokers_have_the_session_settings_of_the_consumer_protocol(
    options: dict[str, str], assignor: str | None
) -> None:
    """librdkafka rejects these settings of members of the protocol."""
    spec = spec_of("g1", "group", group_protocol="consumer", session_timeout_ms="9000", **options)
    config = confluent_consumer.member_config(spec)
    assert config["group.protocol"] == "consumer"
    assert config.get("group.remote.assignor") == assignor
    rejected = {"session.timeout.ms", "heartbeat.interval.ms", "partition.assignment.strategy"}
    assert not rejected & config.keys()
    Consumer(config).close()


def test_static_members_of_librdkafka_have_an_instance_id() -> None:
    spec = spec_of("g2.2", "group", static="1")
    assert confluent_consumer.member_config(spec)["group.instance.id"] == "urteil-group-g2"


@pytest.mark.parametrize(
    ("session", "protocol", "timeout_ms"), [(1, None, 9000), (2, "consumer", None)]
)
def test_member_of_a_migrating_group_returns_with_the_new_protocol(
    session: int, protocol: str | None, timeout_ms: int | None
) -> None:
    options = {"group_protocol": "consumer", "migrates": "1", "session_timeout_ms": "9000"}
    spec = replace(spec_of("g1", "group", **options), session=session)
    config = confluent_consumer.member_config(spec)
    assert config.get("group.protocol") == protocol
    assert config.get("session.timeout.ms") == timeout_ms
    Consumer(config).close()
