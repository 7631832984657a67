"""AlterConfigs, IncrementalAlterConfigs, and DescribeConfigs of what they changed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.conformance.configs import (
    APPEND,
    BROKER,
    DELETE,
    LOGGER,
    METRICS,
    SET,
    SUBTRACT,
    TOPIC,
    Change,
    change,
    changes,
    describe,
    replace,
    values,
)
from tests.conformance.conftest import Pair
from tests.conformance.records import batch, produce
from tests.conformance.side import Side

THROTTLED = "leader.replication.throttled.replicas"

OF_A_TOPIC: dict[str, list[Change]] = {
    "set": [("retention.ms", SET, "1000")],
    "unknown": [("no.such", SET, "1")],
    "no number": [("retention.ms", SET, "x")],
    "too low": [("retention.ms", SET, "-2")],
    "blanks": [("retention.ms", SET, " 5 ")],
    "no policy": [("cleanup.policy", SET, "foo")],
    "empty policy": [("cleanup.policy", SET, "")],
    "policies": [("cleanup.policy", SET, "compact, delete")],
    "append": [("cleanup.policy", APPEND, "compact")],
    "append what is there": [("cleanup.policy", APPEND, "delete")],
    "subtract": [("cleanup.policy", SUBTRACT, "delete")],
    "subtract what is not there": [("cleanup.policy", SUBTRACT, "compact")],
    "append to no list": [("retention.ms", APPEND, "3")],
    "subtract from no list": [("retention.ms", SUBTRACT, "3")],
    "append to unknown": [("no.such", APPEND, "3")],
    "delete unknown": [("no.such", DELETE, None)],
    "delete unset": [("flush.ms", DELETE, None)],
    "null": [("flush.ms", SET, None)],
    "nulls": [("flush.ms", SET, None), ("retention.ms", APPEND, None)],
    "twice": [("flush.ms", SET, "1"), ("flush.ms", DELETE, None)],
    "no operation": [("flush.ms", 9, "1")],
    "nothing": [],
    "lags": [("min.compaction.lag.ms", SET, "10"), ("max.compaction.lag.ms", SET, "5")],
    "tiered": [("remote.storage.enable", SET, "true")],
    "tiered copy": [("remote.log.copy.disable", SET, "true")],
    "throttled": [(THROTTLED, SET, "0:1,1:2")],
    "throttled all": [(THROTTLED, SET, "*")],
    "throttled wrongly": [(THROTTLED, SET, "x,0:1")],
    "throttled more": [(THROTTLED, APPEND, "0:1")],
    "gzip": [("compression.gzip.level", SET, "0")],
    "lz4": [("compression.lz4.level", SET, "18")],
    "zstd": [("compression.zstd.level", SET, "23")],
    "compression": [("compression.type", SET, "x")],
    "boolean": [("preallocate", SET, "x")],
    "small": [("segment.bytes", SET, "1")],
    "large": [("segment.bytes", SET, "99999999999")],
    "ratio": [("min.cleanable.dirty.ratio", SET, "2")],
    "no ratio": [("min.cleanable.dirty.ratio", SET, "x")],
    "format": [("message.format.version", SET, "2.8")],
    "no format": [("message.format.version", SET, "x")],
    "time": [("message.timestamp.type", SET, "x")],
    "several": [("retention.ms", SET, "5"), ("segment.bytes", SET, "1000")],
    "one bad": [("retention.ms", SET, "5"), ("segment.bytes", SET, "x")],
}


@pytest.fixture(scope="module")
def topic(pair: Pair) -> str:
    name = pair.name("altered")
    pair.run_on_both(lambda side: side.create(name))
    return name


@pytest.mark.parametrize("what", OF_A_TOPIC)
def test_topic_changes_are_validated_and_made_alike(pair: Pair, topic: str, what: str) -> None:
    """First validated only, then made, then described."""
    asked, standing = OF_A_TOPIC[what], {"flush.ms": "77", "segment.ms": "5000"}
    keys = {*standing, *(name for name, _, _ in asked)}
    pair.run_on_both(lambda side: replace(side, TOPIC, topic, *standing.items()))
    for version, only in ((0, True), (1, False)):
        pair.assert_same(
            lambda side, v=version, o=only: change(  # type: ignore[misc]
                side, TOPIC, topic, *asked, version=v, validate_only=o
            )
        )
    pair.assert_same(lambda side: describe(side, TOPIC, topic, *keys, include_synonyms=True))


@pytest.mark.parametrize("version", range(3))
def test_all_settings_of_a_topic_are_described_alike(pair: Pair, topic: str, version: int) -> None:
    for configs in (
        [("retention.ms", "5")],
        [("retention.ms", None)],
        [("retention.ms", "5"), ("retention.ms", "6")],
        [("retention.ms", "x")],
        [("no.such", "1")],
        [],
        [("flush.ms", "9"), ("cleanup.policy", "compact")],
    ):
        pair.assert_same(lambda side, c=configs: replace(side, TOPIC, topic, *c, version=version))  # type: ignore[misc]
    pair.assert_same(lambda side: describe(side, TOPIC, topic, include_synonyms=True))


def test_every_broker_accepts_topic_changes(pair: Pair, topic: str) -> None:
    for to in (1, 2, 3):
        pair.assert_same(
            lambda side, t=to: change(side, TOPIC, topic, ("flush.ms", SET, f"{t}"), to=t)
        )  # type: ignore[misc]
        pair.assert_same(lambda side: describe(side, TOPIC, topic, "flush.ms", to=2))


def test_validation_only_changes_nothing(pair: Pair, topic: str) -> None:
    pair.run_on_both(lambda side: replace(side, TOPIC, topic))
    asked = OF_A_TOPIC["set"]
    pair.assert_same(lambda side: change(side, TOPIC, topic, *asked, validate_only=True))
    setting = ("retention.ms", "5")
    pair.assert_same(lambda side: replace(side, TOPIC, topic, setting, validate_only=True))
    pair.assert_same(lambda side: describe(side, TOPIC, topic, "retention.ms"))


RESOURCES = [
    (TOPIC, "never-there"), (TOPIC, "a b"), (TOPIC, ""), (BROKER, "2"), (BROKER, "x"),
    (BROKER, "1 "), (BROKER, "-1"), (METRICS, "x"), (METRICS, ""), (32, "g"), (0, "x"), (1, "x"),
    (3, "x"), (77, "x"), (LOGGER, "x"), (LOGGER, ""),
]  # fmt: skip


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda entity: f"{entity[0]} {entity[1]}")
def test_unchangeable_resources_are_rejected_alike(pair: Pair, resource: tuple[int, str]) -> None:
    kind, name = resource
    pair.assert_same(lambda side: change(side, kind, name, ("root", SET, "INFO")))
    pair.assert_same(lambda side: replace(side, kind, name, ("root", "INFO")))
    pair.assert_same(lambda side: describe(side, kind, name))


def test_several_resources_in_one_request_are_answered_alike(pair: Pair, topic: str) -> None:
    good = (TOPIC, topic, [("flush.ms", SET, "5")])
    bad = (TOPIC, "never-there", [("flush.ms", SET, "5")])
    worse = (TOPIC, topic, [("flush.ms", SET, "x")])
    for together in ([good, bad], [good, good, bad], [bad, bad], [worse, bad], []):
        pair.assert_same(lambda side, t=together: changes(side, t))  # type: ignore[misc]
        pair.assert_same(lambda side: describe(side, TOPIC, topic, "flush.ms"))


OF_A_BROKER: dict[str, list[Change]] = {
    "set": [("log.retention.ms", SET, "100000")],
    "no number": [("log.retention.ms", SET, "x")],
    "zero": [("log.retention.ms", SET, "0")],
    "of the file": [("num.partitions", SET, "3")],
    "as in the file": [("broker.id", SET, "1")],
    "delete what is of the file": [("num.partitions", DELETE, None)],
    "unknown": [("no.such", SET, "1")],
    "delete unknown": [("no.such", DELETE, None)],
    "append": [("log.cleanup.policy", APPEND, "compact")],
    "append to no list": [("log.retention.ms", APPEND, "1")],
    "append to unknown": [("no.such", APPEND, "1")],
    "no threads": [("num.io.threads", SET, "0")],
    "fetchers": [("num.replica.fetchers", SET, "2")],
    "more fetchers": [("num.replica.fetchers", SET, "3")],
    "rate": [("leader.replication.throttled.rate", SET, "1000")],
    "rate below": [("follower.replication.throttled.rate", SET, "-1")],
    "rate of moves": [("replica.alter.log.dirs.io.max.bytes.per.second", SET, "5")],
    "ssl of all listeners": [("ssl.keystore.location", SET, "/x")],
    "ssl of a listener": [("listener.name.client.ssl.keystore.type", SET, "PKCS12")],
    "password": [("listener.name.client.ssl.keystore.password", SET, "x")],
    "jaas": [("listener.name.client.plain.sasl.jaas.config", SET, "x")],
    "connections of a listener": [("listener.name.client.max.connections", SET, "5000")],
    "connections": [("max.connections", SET, "-1")],
    "policy": [("log.cleanup.policy", SET, "x")],
    "compression": [("compression.type", SET, "x")],
    "ratio": [("log.cleaner.min.cleanable.ratio", SET, "2")],
    "no cleaner": [("log.cleaner.threads", SET, "0")],
    "buffer": [("log.cleaner.dedupe.buffer.size", SET, "100")],
    "reporters": [("metric.reporters", SET, "a.b.C")],
    "none an address": [("max.connections.per.ip", SET, "0")],
    "lags": [
        ("log.cleaner.min.compaction.lag.ms", SET, "10"),
        ("log.cleaner.max.compaction.lag.ms", SET, "5"),
    ],
    "tiered": [("log.retention.ms", SET, "9"), ("log.local.retention.ms", SET, "-1")],
    "tiered bytes": [("log.retention.bytes", SET, "9"), ("log.local.retention.bytes", SET, "10")],
    "producers": [("producer.id.expiration.ms", SET, "-1")],
    "no operation": [("log.retention.ms", 9, "1")],
    "twice": [("log.retention.ms", SET, "1"), ("log.retention.ms", SET, "1")],
    "null": [("log.retention.ms", SET, None)],
    "min isr": [("min.insync.replicas", SET, "0")],
    "message": [("message.max.bytes", SET, "-1")],
    "jitter": [("log.roll.jitter.ms", SET, "-1")],
    "roll": [("log.roll.ms", SET, "0")],
    "delay": [("log.segment.delete.delay.ms", SET, "-1")],
    "unclean": [("unclean.leader.election.enable", SET, "maybe")],
    "interval": [("log.flush.interval.messages", SET, "0")],
    "index": [("log.index.size.max.bytes", SET, "3")],
}


@pytest.mark.parametrize("what", OF_A_BROKER)
@pytest.mark.parametrize("name", ["1", ""], ids=["one", "all"])
def test_broker_changes_are_validated_alike(pair: Pair, what: str, name: str) -> None:
    """Validation changes nothing, so that questions do not depend on each other."""
    asked = OF_A_BROKER[what]
    pair.assert_same(lambda side: change(side, BROKER, name, *asked, validate_only=True))


WRONG_LISTENERS: dict[str, list[tuple[str, str]]] = {
    "no uri": [("listeners", "CLIENT:9092")],
    "no host": [("listeners", "CLIENT://h h:9092")],
    "no port": [("listeners", "CLIENT://h:x")],
    "large port": [("listeners", "CLIENT://h:99999999999")],
    "no name": [("listeners", "://h:9092")],
    "no protocol": [("listeners", "OTHER://h:9092")],
    "one name twice": [("listeners", "CLIENT://h:1,CLIENT://h:2")],
    "one port twice": [("listeners", "CLIENT://h:1,INTERNAL://i:1")],
    "none": [("listeners", "")],
    "not the one of brokers": [("listeners", "CLIENT://h:1")],
    "no protocol advertised": [("advertised.listeners", "OTHER://h:1")],
    "not bound": [("advertised.listeners", "INTERNAL://h:1,PLAINTEXT://h:2")],
    "not the one of brokers advertised": [("advertised.listeners", "CLIENT://h:1")],
    "meta-address": [("advertised.listeners", "INTERNAL://0.0.0.0:1")],
    "none advertised": [("advertised.listeners", "")],
    "map without a colon": [("listener.security.protocol.map", "CLIENT")],
    "unknown protocol": [("listener.security.protocol.map", "CLIENT:TLS,INTERNAL:PLAINTEXT")],
    "map without a listener": [("listener.security.protocol.map", "CLIENT:PLAINTEXT")],
    "map without a name": [("listener.security.protocol.map", ":PLAINTEXT")],
}


@pytest.mark.parametrize("what", WRONG_LISTENERS)
def test_wrong_listeners_are_rejected_in_the_same_words(pair: Pair, what: str) -> None:
    """Ours adds the setting and the remedy."""
    asked = [(name, SET, value) for name, value in WRONG_LISTENERS[what]]
    for name in ("1", ""):
        (theirs,), (ours,) = (
            change(side, BROKER, name, *asked, validate_only=True)
            for side in (pair.theirs, pair.ours)
        )
        assert ours[:3] == theirs[:3]
        assert _without_addresses(ours[3]).startswith(_without_addresses(theirs[3]))


def _without_addresses(text: str) -> str:
    return re.sub(r"127\.\d+\.\d+\.\d+:\d+", "ADDRESS", text)


def test_passwords_without_an_encoder_secret_are_rejected(pair: Pair) -> None:
    """Validation passes; writing requires password.encoder.secret."""
    for what in ("password", "jaas"):
        pair.assert_same(lambda side, w=what: change(side, BROKER, "1", *OF_A_BROKER[w]))  # type: ignore[misc]


@pytest.fixture
def clean(pair: Pair) -> Iterator[None]:
    """Brokers without settings of their own or of all, after the test."""
    yield

    def wipe(side: Side) -> None:
        for name in ("1", ""):
            assert replace(side, BROKER, name)[0][2] == "NONE"
        # that of one broker is heard of before that of all
        side.until_everywhere(lambda to: not values(side, BROKER, "", to=to))
        side.until(lambda: _source(side, "log.retention.ms") == 5)

    pair.run_on_both(wipe)


def _source(side: Side, name: str, to: int = 1) -> int:
    answer = describe(side, BROKER, str(to), name, to=to)
    return int(answer["results"][0]["configs"][0]["config_source"])


LOOKED_AT = [
    "log.retention.ms", "log.retention.minutes", "log.retention.hours", "min.insync.replicas",
    "log.cleanup.policy", "leader.replication.throttled.rate", "no.such", "num.replica.fetchers",
    "listener.name.client.max.connections", "max.connections", "log.roll.hours", "log.roll.ms",
    "log.cleaner.min.cleanable.ratio", "log.cleaner.io.max.bytes.per.second",
    "log.flush.interval.ms",
]  # fmt: skip

ALL: list[Change] = [
    ("log.retention.ms", SET, "500000"),
    ("min.insync.replicas", SET, "2"),
    ("follower.replication.throttled.rate", SET, "9"),
    ("max.connections", SET, "4000"),
    ("log.cleaner.min.cleanable.ratio", SET, "1"),
]
ONE: list[Change] = [
    ("log.retention.ms", SET, "400000"),
    ("log.cleanup.policy", SET, "compact , delete"),
    ("leader.replication.throttled.rate", SET, "1000"),
    ("no.such", SET, "1"),
    ("listener.name.client.max.connections", SET, "5000"),
    ("log.roll.ms", SET, "7000"),
    ("log.cleaner.io.max.bytes.per.second", SET, "12345678.5"),
]


@pytest.mark.usefixtures("clean")
def test_sources_of_settings_are_described_alike(pair: Pair, topic: str) -> None:
    """Topic, this broker, all brokers, file, default: shown so at every version."""

    def given(side: Side) -> None:
        assert change(side, BROKER, "", *ALL, to=2)[0][2] == "NONE"
        assert change(side, BROKER, "1", *ONE)[0][2] == "NONE"
        assert change(side, TOPIC, topic, ("retention.ms", SET, "300000"))[0][2] == "NONE"
        for broker in (1, 2):
            side.until(lambda b=broker: _source(side, "min.insync.replicas", b) == 3)  # type: ignore[misc]
        side.until(lambda: _source(side, "log.roll.ms") == 2)

    pair.run_on_both(given)
    for version in (0, 1, 2, 3, 4):
        for synonyms in {True, version < 3}:
            more: dict[str, Any] = {
                "version": version,
                "include_synonyms": synonyms,
                "include_documentation": synonyms,
            }
            for kind, name, keys, to in (
                (BROKER, "1", LOOKED_AT, 1),
                (BROKER, "2", LOOKED_AT, 2),
                (BROKER, "", [], 1),
                (BROKER, "", ["min.insync.replicas"], 2),
                (TOPIC, topic, [], 1),
                (TOPIC, topic, [], 2),
            ):
                pair.assert_same(
                    lambda side, k=kind, n=name, y=keys, t=to, m=more: describe(  # type: ignore[misc]
                        side, k, n, *y, to=t, **m
                    )
                )


@pytest.mark.usefixtures("clean")
def test_settings_take_effect_at_once_by_precedence(pair: Pair) -> None:
    """A broker's default for topics, above it one broker's, above that the topic's own."""
    name = pair.name("limited")
    pair.run_on_both(lambda side: side.create(name, [(1,), (2,)]))

    def sizes(side: Side) -> Any:
        sizes = []
        for partition, leader in ((0, 1), (1, 2)):
            for size in (300, 3000):
                request = produce(name, batch([bytes(size)]), partition=partition)
                answer = side.get(request, 9, to=leader)
                sizes.append(answer.responses[0].partition_responses[0].error_code)
        return sizes

    def limit(kind: int, resource: str, key: str, value: str, *limits: int) -> Any:
        def set_it(side: Side) -> Any:
            assert change(side, kind, resource, (key, SET, value))[0][2] == "NONE"
            expected = [0 if size < limit else 10 for limit in limits for size in (300, 3000)]
            side.until(lambda: sizes(side) == expected)
            return [describe(side, TOPIC, name, "max.message.bytes", to=to) for to in (1, 2)]

        return set_it

    pair.assert_same(limit(BROKER, "", "message.max.bytes", "1000", 1000, 1000))
    pair.assert_same(limit(BROKER, "1", "message.max.bytes", "200", 200, 1000))
    pair.assert_same(limit(TOPIC, name, "max.message.bytes", "5000", 5000, 5000))


LEVELS: dict[str, tuple[str, list[Change]]] = {
    "set": ("1", [("{}", SET, "DEBUG")]),
    "no level": ("1", [("{}", SET, "X")]),
    "small letters": ("1", [("{}", SET, "debug")]),
    "no logger": ("1", [("no.such", SET, "INFO")]),
    "unset": ("1", [("{}", DELETE, None)]),
    "unset root": ("1", [("root", DELETE, None)]),
    "unset no logger": ("1", [("no.such", DELETE, None)]),
    "append": ("1", [("{}", APPEND, "INFO")]),
    "subtract": ("1", [("{}", SUBTRACT, "INFO")]),
    "no operation": ("1", [("{}", 9, "INFO")]),
    "one bad": ("1", [("{}", SET, "ERROR"), ("no.such", SET, "INFO")]),
    "another": ("1", [("{}", SET, "WARN")]),
    "families": ("1", [("kafka", SET, "INFO"), ("kafka.log", SET, "WARN")]),
}
A_LOGGER = {"ours": "fetcher", "theirs": "kafka.server.KafkaServer"}  # made at the start


@pytest.mark.parametrize("what", LEVELS)
def test_logger_levels_are_changed_alike(pair: Pair, what: str) -> None:
    """The loggers' names are each broker's own."""

    def question(side: Side) -> Any:
        own = A_LOGGER[side.name]
        name, configs = LEVELS[what]
        asked = [(key.format(own), operation, value) for key, operation, value in configs]
        said = [
            change(side, LOGGER, name, *asked, version=version, validate_only=only)
            for version in (0, 1)
            for only in (True, False)
        ]
        answer = describe(side, LOGGER, name, own, "root", include_synonyms=True)
        return str([said, answer]).replace(own, "a logger")

    pair.assert_same(question)


def test_loggers_of_another_broker_are_rejected_alike(pair: Pair) -> None:
    """Apache Kafka names its own id twice here; only the error is compared."""
    pair.assert_same(lambda side: change(side, LOGGER, "2", ("root", SET, "INFO"))[0][2])
