"""The property file: types, defaults, checks across properties, listeners, classes."""

from __future__ import annotations

from pathlib import Path

import pytest

from urteil.broker.__main__ import main, read_config
from urteil.broker.config.broker_config import BrokerConfig, load_config
from urteil.broker.config.java_classes import JMX
from urteil.broker.config.values import ConfigError, known_keys
from urteil.broker.log.cleaner.cleaner_settings import CleanerSettings
from urteil.broker.log.log_config import LogConfig
from urteil.broker.net.endpoints import endpoints, own_name

MINIMAL = {"broker.id": "1", "zookeeper.connect": "zk1:2181"}


def load(**more: str) -> BrokerConfig:
    return load_config({**MINIMAL, **{name.replace("_", "."): more[name] for name in more}})


def test_defaults_equal_kafkas() -> None:
    config = load()
    assert config.replica_lag_time_max_ms == 30_000
    assert config.zookeeper_session_timeout_ms == 18_000
    assert config.socket_request_max_bytes == 104_857_600
    assert config.auto_create_topics_enable is True
    assert config.properties.value("unclean.leader.election.enable") is False
    assert config.listeners[0].port == 9092


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("num.partitions", "many", "Not a number of type INT"),
        ("num.partitions", "0", "at least 1"),
        ("num.partitions", str(2**31), "Not a number of type INT"),
        ("auto.create.topics.enable", "yes", "true or false"),
        ("log.cleaner.min.cleanable.ratio", "half", "DOUBLE"),
        ("log.cleanup.policy", "shred", "one of: compact, delete"),
        ("listeners", "nonsense", "NAME://HOST:PORT"),
        ("listeners", "CLIENT://h:1", "No security protocol"),
        ("listeners", "PLAINTEXT://h:65536", "port out of range, 0 to 65535"),
        ("advertised.listeners", "OTHER://h:1", "No security protocol"),
        ("advertised.listeners", "SSL://h:1", "inter.broker.listener.name must be"),
        ("advertised.listeners", "", "at least one broker advertised listener"),
        ("advertised.listeners", "PLAINTEXT://0.0.0.0:1", "nonroutable meta-address"),
        ("inter.broker.listener.name", "NOWHERE", "not found in listener.security.protocol.map"),
        ("listener.security.protocol.map", "PLAINTEXT:TRACE", "Invalid security protocol `TRACE`"),
        ("listener.security.protocol.map", "PLAINTEXT", "has no colon"),
        ("inter.broker.protocol.version", "latest", "Version latest is not a valid version"),
        ("log.roll.hours", "0", "at least 1"),
        ("controller.quorum.voters", "h:9", "{id}@{host}:{port}"),
        ("process.roles", "broker", "ZooKeeper mode alone"),
        ("remote.log.storage.system.enable", "true", "no tiered storage"),
        ("zookeeper.metadata.migration.enable", "true", "cannot migrate"),
    ],
)
def test_invalid_value_is_reported_with_its_property(name: str, value: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why) as refused:
        load_config({**MINIMAL, name: value})
    assert value.split(":")[0] in str(refused.value)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("num.partitions", " +007 ", 7),
        ("num.partitions", "\u0663", 3),
        ("log.cleaner.io.buffer.load.factor", "0x1p-1", 0.5),
        ("log.cleaner.io.buffer.load.factor", ".5d", 0.5),
        ("log.cleaner.io.max.bytes.per.second", "Infinity", float("inf")),
        ("log.cleanup.policy", "compact , delete", ["compact", "delete"]),
        ("inter.broker.protocol.version", "3.9.1", "3.9.1"),
        ("broker.rack", "\xa0r\xa0", "\xa0r\xa0"),
        ("default.replication.factor", "-1", -1),
    ],
)
def test_values_are_parsed_as_in_java(name: str, text: str, value: object) -> None:
    config = load_config({**MINIMAL, name: text})
    assert config.properties.value(name) == value
    LogConfig.from_properties(config.properties)
    CleanerSettings.from_properties(config.properties)


CLASSES = (
    "alter.config.policy.class.name", "authorizer.class.name", "client.quota.callback.class",
    "create.topic.policy.class.name", "group.consumer.assignors", "kafka.metrics.reporters",
    "metric.reporters", "principal.builder.class", "replica.selector.class",
    "sasl.client.callback.handler.class", "sasl.login.callback.handler.class", "sasl.login.class",
    "sasl.server.callback.handler.class", "security.providers", "ssl.engine.factory.class",
    "zookeeper.clientCnxnSocket", "listener.name.plaintext.ssl.engine.factory.class",
    "listener.name.plaintext.plain.sasl.server.callback.handler.class",
)  # fmt: skip


@pytest.mark.parametrize("name", CLASSES)
def test_unsupported_class_is_rejected_by_name(name: str) -> None:
    with pytest.raises(
        ConfigError, match=r"Class com\.example\.Policy could not be found"
    ) as refused:
        load_config({**MINIMAL, name: "com.example.Policy"})
    assert f"configuration {name}:" in str(refused.value)


def test_every_class_setting_lists_its_classes() -> None:
    assert {name for name, key in known_keys().items() if key.type == "class"} <= set(CLASSES)


def test_class_without_effect_here_is_accepted() -> None:
    config = load_config({**MINIMAL, "metric.reporters": JMX})
    assert config.properties.value("metric.reporters") == [JMX]


@pytest.mark.parametrize(
    ("given", "broker_id"),
    [
        ({"broker.id": "5"}, 5),
        ({"node.id": "5"}, 5),
        ({"node.id": "5", "broker.id": "5"}, 5),
        ({"broker.id": "1001", "reserved.broker.max.id": "2000"}, 1001),
        ({"broker.id": "1001", "broker.id.generation.enable": "false"}, 1001),
        ({}, -1),
    ],
)
def test_broker_id_is_either_of_two_settings(given: dict[str, str], broker_id: int) -> None:
    assert load_config({"zookeeper.connect": "zk:1", **given}).broker_id == broker_id


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"broker.id": "1001"}, "not greater than reserved.broker.max.id"),
        ({"node.id": "5", "broker.id": "6"}, "same value as `broker.id`\\. \\(They are 5 and 6"),
        ({"broker.id": "-2"}, "greater than or equal to -1"),
        ({"broker.id.generation.enable": "false"}, "greater than or equal to 0"),
    ],
)
def test_invalid_broker_id_is_rejected(given: dict[str, str], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        load_config({"zookeeper.connect": "zk:1", **given})


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        ({"log_retention_ms": "0"}, "log.retention.ms must be"),
        ({"log_retention_hours": "0"}, "log.retention.ms must be"),
        ({"log_flush_interval_ms": "-1"}, "flush.ms: Value must be at least 0"),
        ({"replica_lag_time_max_ms": "499"}, "less than or equal to replica.lag.time.max.ms"),
        ({"replica_socket_timeout_ms": "499"}, "replica.socket.timeout.ms should always be"),
        ({"offsets_commit_required_acks": "4"}, "offsets.commit.required.acks must be"),
        ({"connections_max_idle_ms": "100"}, "connection.failed.authentication.delay.ms=100"),
        ({"log_dirs": ","}, "At least one log directory"),
        ({"log_cleaner_threads": "500"}, "log.cleaner.dedupe.buffer.size must be"),
        ({"max_connections_per_ip": "0"}, "max.connections.per.ip can be"),
        (
            {
                "inter_broker_listener_name": "PLAINTEXT",
                "security_inter_broker_protocol": "PLAINTEXT",
            },
            "Only one of inter.broker.listener.name and security.inter.broker.protocol",
        ),
        ({"zookeeper_set_acl": "true"}, "true for configuration zookeeper.set.acl: this broker"),
        ({"zookeeper_ssl_client_enable": "true"}, "no TLS to ZooKeeper"),
        ({"queued_max_request_bytes": "1000"}, "queued.max.request.bytes must be larger"),
    ],
)
def test_contradicting_properties_are_rejected(setting: dict[str, str], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        load(**setting)


def test_listeners_are_parsed_with_their_inter_broker_listener() -> None:
    config = load(
        listeners="INTERNAL://127.0.0.2:9092,CLIENT://127.0.0.2:9093",
        advertised_listeners="INTERNAL://b2:9092,CLIENT://127.9.9.9:29093",
        listener_security_protocol_map="INTERNAL:PLAINTEXT,CLIENT:PLAINTEXT",
        inter_broker_listener_name="INTERNAL",
    )
    assert config.inter_broker.advertised_uri == "INTERNAL://b2:9092"
    assert [listener.advertised_uri for listener in config.listeners] == [
        "INTERNAL://b2:9092",
        "CLIENT://127.9.9.9:29093",
    ]
    assert [(listener.host, listener.port) for listener in config.listeners] == [
        ("127.0.0.2", 9092),
        ("127.0.0.2", 9093),
    ]


def test_unadvertised_listener_is_bound() -> None:
    config = load(
        listeners="A://127.0.0.2:1,B://:2", listener_security_protocol_map="A:SSL,B:PLAINTEXT",
        advertised_listeners="B://:7", inter_broker_listener_name="B",
    )  # fmt: skip
    shown = [
        (listener.name, listener.port, listener.is_advertised) for listener in config.listeners
    ]
    assert shown == [("B", 2, True), ("A", 1, False)]
    (endpoint,) = endpoints(config.listeners, lambda _: 0)
    assert (endpoint.host, endpoint.port) == (own_name(), 7)


def test_port_0_is_registered_as_the_bound_port() -> None:
    config = load(listeners="PLAINTEXT://[::1]:0")
    (endpoint,) = endpoints(config.listeners, {"PLAINTEXT": 4711}.__getitem__)
    assert endpoint.uri == "PLAINTEXT://[::1]:4711"


def test_overrides_win_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("broker.id=1\nzookeeper.connect=zk:1\nnum.partitions=2\n")
    config = read_config([str(file), "--override", "num.partitions=5", "--override", "broker.id=7"])
    assert (config.num_partitions, config.broker_id) == (5, 7)


def test_broker_with_an_invalid_file_exits_with_1(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "server.properties"
    file.write_text("broker.id=one\nzookeeper.connect=zk:1\n")
    assert main([str(file)]) == 1
    assert f"{file}: Invalid value one for configuration broker.id" in caplog.text
    assert main([str(tmp_path / "missing")]) == 1


def test_unknown_properties_cause_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    load(no_such_thing="1")
    assert "no.such.thing" in caplog.text
