"""server.properties: syntax, types, defaults, listeners."""

from __future__ import annotations

from pathlib import Path

import pytest

from urteil.broker.__main__ import main, read_config
from urteil.broker.server.config import BrokerConfig, load_config
from urteil.broker.server.config_values import ConfigError
from urteil.broker.server.properties import parse_properties

MINIMAL = {"broker.id": "1", "zookeeper.connect": "zk1:2181"}


def load(**more: str) -> BrokerConfig:
    return load_config({**MINIMAL, **{name.replace("_", "."): more[name] for name in more}})


def test_property_files_are_javas() -> None:
    text = (
        "# comment\n! another\n\n"
        "a=1\nb = 2\nc: 3\nd 4\n"
        "  long = one,\\\n     two\n"
        "esc\\=aped=x\\ty\\u00e9\n"
        "empty=\nalone\na=last\n"
    )
    assert parse_properties(text) == {
        "a": "last",
        "b": "2",
        "c": "3",
        "d": "4",
        "long": "one,two",
        "esc=aped": "x\tyé",
        "empty": "",
        "alone": "",
    }


def test_defaults_are_kafkas() -> None:
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
        ("advertised.listeners", "OTHER://h:1", "not among listeners"),
        ("inter.broker.listener.name", "NOWHERE", "no advertised listener"),
    ],
)
def test_a_bad_value_is_named_with_its_property(name: str, value: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why) as refused:
        load_config({**MINIMAL, name: value})
    assert value.split(":")[0] in str(refused.value)


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        ({"log_retention_ms": "0"}, "log.retention.ms must be"),
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
        ({"zookeeper_ssl_client_enable": "true"}, "no credentials for ZooKeeper"),
        ({"queued_max_request_bytes": "1000"}, "queued.max.request.bytes must be larger"),
    ],
)
def test_rules_between_properties(setting: dict[str, str], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        load(**setting)


def test_listeners_have_names_addresses_and_an_inter_broker_one() -> None:
    config = load(
        listeners="INTERNAL://127.0.0.2:9092,CLIENT://127.0.0.2:9093",
        advertised_listeners="INTERNAL://b2:9092,CLIENT://127.9.9.9:29093",
        listener_security_protocol_map="INTERNAL:PLAINTEXT,CLIENT:PLAINTEXT",
        inter_broker_listener_name="INTERNAL",
    )
    assert config.inter_broker.advertised_uri == "INTERNAL://b2:9092"
    assert [one.advertised_uri for one in config.listeners] == [
        "INTERNAL://b2:9092",
        "CLIENT://127.9.9.9:29093",
    ]
    assert [(one.host, one.port) for one in config.listeners] == [
        ("127.0.0.2", 9092),
        ("127.0.0.2", 9093),
    ]


def test_overrides_come_last(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("broker.id=1\nzookeeper.connect=zk:1\nnum.partitions=2\n")
    config = read_config([str(file), "--override", "num.partitions=5", "--override", "broker.id=7"])
    assert (config.num_partitions, config.broker_id) == (5, 7)


def test_a_broker_with_a_bad_file_says_so_and_exits_1(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "server.properties"
    file.write_text("broker.id=one\nzookeeper.connect=zk:1\n")
    assert main([str(file)]) == 1
    assert "Invalid value one for configuration broker.id" in caplog.text
    assert main([str(tmp_path / "missing")]) == 1


def test_unknown_properties_are_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    load(no_such_thing="1")
    assert "no.such.thing" in caplog.text
