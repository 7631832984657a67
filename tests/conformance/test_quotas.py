"""Quotas of clients: altered, described and obeyed as by Apache Kafka, and by its ConfigCommand."""

from __future__ import annotations

import itertools
import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.conformance.guarded import Guarded, GuardedPair
from tests.conformance.kafka_tools import old_tool, tool
from tests.conformance.questions.registry import RUN
from tests.conformance.records import batch, produce
from tests.conformance.side import CLOSED, Side
from urteil.broker.wire.messages import (
    AlterClientQuotasRequest,
    CreateTopicsRequest,
    DescribeClientQuotasRequest,
    FetchRequest,
    MetadataRequest,
)
from urteil.broker.wire.schema import Message

CONFIG = "kafka.admin.ConfigCommand"
Parts = Sequence[tuple[str, str | None]]

ENTITIES: dict[str, Parts] = {
    "a user": [("user", "ann b*~ü")],
    "the default user": [("user", None)],
    "a client": [("client-id", "app/1")],
    "the default client": [("client-id", None)],
    "both": [("client-id", "app"), ("user", "ann")],
    "both by default": [("user", None), ("client-id", None)],
    "an address": [("ip", "127.0.0.9")],
    "the default address": [("ip", None)],
    "nobody": [],
    "an empty user": [("user", "")],
    "another type": [("team", "x")],
    "no address": [("ip", "no such host")],
    "an address and a user": [("ip", "127.0.0.9"), ("user", "ann")],
    "a user of no node's name": [("user", ".")],
    "both, one of no node's name": [("user", "ann"), ("client-id", "..")],
    "no address, of no node's name": [("ip", "..")],
    "a client twice, first by no name": [("client-id", ""), ("client-id", "app/1")],
}
CHANGES: dict[str, Mapping[str, float | None]] = {
    "rates": {"producer_byte_rate": 1e9, "consumer_byte_rate": 2e9},
    "fractions": {"request_percentage": 5000.5, "controller_mutation_rate": 5000.5},
    "connections": {"connection_creation_rate": 5000.0},
    "half a byte": {"producer_byte_rate": 0.5},
    "an unknown key": {"bytes": 1.0},
    "one less": {"consumer_byte_rate": None, "bytes": None},
}


def alter(
    entity: Parts, changes: Mapping[str, float | None], *, validate_only: bool = False
) -> AlterClientQuotasRequest:
    kind = AlterClientQuotasRequest
    entry = kind.EntryData(
        entity=[kind.EntityData(entity_type=type, entity_name=name) for type, name in entity],
        ops=[
            kind.OpData(key=key, value=value or 0.0, remove=value is None)
            for key, value in changes.items()
        ],
    )
    return kind(entries=[entry], validate_only=validate_only)


def describe(*components: tuple[str, int, str | None], strict: bool = False) -> Any:
    kind = DescribeClientQuotasRequest
    return kind(
        components=[
            kind.ComponentData(entity_type=type, match_type=how, match=name)
            for type, how, name in components
        ],
        strict=strict,
    )


def sorted_entries(answer: Any) -> Any:
    """Entries, and what is in them, in an order of their own; the words of a refusal left out."""
    if isinstance(answer, dict):
        made = {key: sorted_entries(value) for key, value in answer.items()}
        for key in ("entries", "values", "entity"):
            if isinstance(made.get(key), list):
                made[key] = sorted(made[key], key=str)
        return made
    return [sorted_entries(element) for element in answer] if isinstance(answer, list) else answer


def nodes(guarded_side: Guarded) -> dict[str, Any]:
    """The settings of users, clients and addresses in ZooKeeper."""
    nodes: dict[str, Any] = {}
    with guarded_side.admin.znodes() as zk:

        def look(path: str) -> None:
            data, _ = zk.get(path)
            if data:
                nodes[path] = json.loads(data)
            for child in zk.get_children(path):
                look(f"{path}/{child}")

        for kind in ("users", "clients", "ips"):
            look(f"/config/{kind}")
    return nodes


def test_quota_alterations_are_answered_alike(guarded: GuardedPair) -> None:
    for entity in ENTITIES.values():
        for changes in CHANGES.values():
            for version, validate_only in ((0, True), (0, False), (1, False)):
                _same(guarded, alter(entity, changes, validate_only=validate_only), version)
    guarded.assert_same(nodes)


def test_quota_values_are_stored_in_javas_notation(guarded: GuardedPair) -> None:
    """Also NaN, and values too large for a long."""
    for value in (math.nan, math.inf, -1.0, 0.0, 1e30, 1e-4, 1234567.0, 12345678.9, 2e9, -3e10):
        for key in ("producer_byte_rate", "request_percentage", "connection_creation_rate"):
            who: Parts = [("ip", "127.0.0.8")] if key.startswith("conn") else [("user", "many")]
            _same(guarded, alter(who, {key: value}), 1)
        guarded.assert_same(nodes)
    _same(
        guarded,
        alter([("user", "many")], dict.fromkeys(("producer_byte_rate", "request_percentage"))),
        1,
    )
    _same(guarded, alter([("ip", "127.0.0.8")], {"connection_creation_rate": None}), 1)


def _same(guarded: GuardedPair, request: Message, version: int) -> None:
    guarded.assert_same(
        lambda guarded_side: sorted_entries(guarded_side.admin.ask(request, version))
    )


FILTERS: dict[str, Any] = {
    "all": describe(),
    "nobody else": describe(strict=True),
    "a user": describe(("user", 0, "ann b*~ü")),
    "a user alone": describe(("user", 0, "ann"), strict=True),
    "the default user": describe(("user", 1, None)),
    "any user": describe(("user", 2, None)),
    "any user alone": describe(("user", 2, None), strict=True),
    "any client": describe(("client-id", 2, None)),
    "both": describe(("user", 0, "ann"), ("client-id", 2, None)),
    "any address": describe(("ip", 2, None)),
    "a user and an address": describe(("user", 2, None), ("ip", 2, None)),
    "a user twice": describe(("user", 2, None), ("user", 2, None)),
    "another type": describe(("team", 2, None)),
    "an empty type": describe(("", 2, None)),
    "a match of no kind": describe(("user", 7, None)),
    "a user of no node's name": describe(("user", 0, ".")),
    "a user alone of no node's name": describe(("user", 0, ""), strict=True),
    "an address of no node's name": describe(("ip", 0, "..")),
    "both, one of no node's name": describe(("user", 0, "ann"), ("client-id", 0, "")),
    "by default and by no name": describe(("user", 1, None), ("client-id", 0, "")),
    "any user, a client by no name": describe(("user", 2, None), ("client-id", 0, ""), strict=True),
}


@pytest.mark.parametrize("text", FILTERS)
def test_quotas_are_described_alike(guarded: GuardedPair, text: str) -> None:
    for version in (0, 1):
        _same(guarded, FILTERS[text], version)


def test_all_quotas_are_removed(guarded: GuardedPair) -> None:
    for entity in ENTITIES.values():
        keys = {key for changes in CHANGES.values() for key in changes}
        _same(guarded, alter(entity, dict.fromkeys(sorted(keys))), 1)
    assert (
        guarded.assert_same(
            lambda guarded_side: sorted_entries(guarded_side.admin.ask(describe(), 1))
        )["entries"]
        == []
    )
    assert not any(node["config"] for node in nodes(guarded.ours).values())


def _set(guarded_side: Guarded, client: str, **changes: float) -> None:
    """Set and heard of: a later quota of another client, which comes after it, is obeyed.

    What the client did before counts else, and it may be minutes until it is heard again."""
    topic, last = f"quota-heard-{client}-{RUN}", f"{client} is heard"
    guarded_side.admin.create(topic)
    for name, quotas in ((client, changes), (last, {"producer_byte_rate": 1.0})):
        answer = guarded_side.admin.get(alter([("client-id", name)], quotas), 1)
        assert answer.entries[0].error_code == 0, answer
    few = produce(topic, batch([b"x"]))
    guarded_side.muted.until(
        lambda: guarded_side.muted.get(few, 9, client=last).throttle_time_ms > 0
    )
    guarded_side.muted.close()  # what is asked on a muted connection has to wait


def test_producer_is_throttled_to_its_byte_rate(guarded: GuardedPair) -> None:
    """The throttle time brings the rate down to the limit; the connection is muted for it."""
    topic, waits, took = f"quota-bytes-{RUN}", {}, {}
    for guarded_side in (guarded.theirs, guarded.ours):
        guarded_side.admin.create(topic)
        _set(guarded_side, "slow", producer_byte_rate=10_000.0)
        began_s = time.monotonic()  # before the wait begins, whenever its answer is read here
        waits[guarded_side.name] = _first_wait(
            guarded_side, lambda side: _produce_wait(side, topic)
        )
        guarded_side.muted.get(MetadataRequest(topics=[]), 9, client="slow")
        took[guarded_side.name] = time.monotonic() - began_s
        guarded_side.muted.close()
    assert 1000 < waits["ours"] < 3000
    assert abs(waits["ours"] - waits["theirs"]) < 700, waits
    for name, wait_ms in waits.items():
        assert took[name] >= wait_ms / 1000 - 0.2, (name, waits, took)


def _first_wait(guarded_side: Guarded, ask: Callable[[Side], int]) -> int:
    """The first throttle time."""
    waits_ms: list[int] = []

    def waits() -> bool:
        waits_ms[:] = [ask(guarded_side.muted)]
        return waits_ms[0] > 0

    guarded_side.muted.until(waits)
    return waits_ms[0]


def _produce_wait(side: Side, topic: str) -> int:
    request = produce(topic, batch([b"x" * 115_000]))
    return int(side.get(request, 9, client="slow").throttle_time_ms)


def test_consumer_above_its_byte_rate_gets_an_empty_answer(guarded: GuardedPair) -> None:
    """A fetch above the limit gets an empty answer and a throttle time."""
    topic, waits = f"quota-reads-{RUN}", {}
    for guarded_side in (guarded.theirs, guarded.ours):
        guarded_side.admin.create(topic)
        guarded_side.admin.get(produce(topic, batch([b"x" * 60_000])), 9)
        _set(guarded_side, "reader", consumer_byte_rate=10_000.0)
        waits[guarded_side.name] = _first_wait(guarded_side, lambda side: _fetch_wait(side, topic))
        guarded_side.muted.close()
    # 12 s are owed, 10 windows and what the first one has had of the next are over
    assert all(1000 <= wait_ms < 2100 for wait_ms in waits.values()), waits


def _fetch_wait(side: Side, topic: str) -> int:
    """How long to wait; then there are no records."""
    asked = FetchRequest.FetchPartition(partition=0, partition_max_bytes=90_000)
    topics = [FetchRequest.FetchTopic(topic=topic, partitions=[asked])]
    request = FetchRequest(max_wait_ms=0, max_bytes=90_000, topics=topics)
    answer = side.get(request, 11, client="reader")
    sizes = [len(p.records or b"") for t in answer.responses for p in t.partitions]
    wait_ms = int(answer.throttle_time_ms)
    assert (sum(sizes) > 60_000) is (wait_ms == 0), (wait_ms, sizes)
    return wait_ms


def test_throttled_fetch_defers_the_session_error(guarded: GuardedPair) -> None:
    """The error for the unknown session follows after the throttle time."""
    asked = FetchRequest(max_wait_ms=0, session_id=7, session_epoch=3)

    def ask(guarded_side: Guarded) -> list[Any]:
        free = guarded_side.admin.ask(asked, 11)
        _set(guarded_side, "returner", consumer_byte_rate=1.0)  # any answer is larger
        throttled = guarded_side.muted.ask(asked, 11, client="returner")
        guarded_side.muted.close()
        assert throttled.pop("throttle_time_ms") > 0, (guarded_side.name, throttled)
        return [free, throttled]

    free, throttled = guarded.assert_same(ask)
    assert (free["error_code"], throttled["error_code"]) == ("FETCH_SESSION_ID_NOT_FOUND", "NONE")


def _create(name: str, partitions: int) -> CreateTopicsRequest:
    kind = CreateTopicsRequest.CreatableTopic
    topic = kind(name=name, num_partitions=partitions, replication_factor=1)
    return CreateTopicsRequest(topics=[topic], timeout_ms=10_000)


def test_mutation_quota_is_strict_for_new_clients_alone(guarded: GuardedPair) -> None:
    """Strict for clients with the error, permissive for older ones (KIP-599). The throttle time is
    the debt less what time has repaid."""
    for guarded_side in (guarded.theirs, guarded.ours):
        _set(guarded_side, "maker", controller_mutation_rate=0.1)
        began_s = time.monotonic()
        wait_ms = _first_wait(guarded_side, _create_until_throttled)
        assert _is_owed(began_s, 29_000, wait_ms), (guarded_side.name, wait_ms)
        guarded_side.muted.close()
        answer = guarded_side.muted.get(_create("quota-older", 2), 5, client="maker")
        guarded_side.muted.close()
        assert answer.topics[0].error_code == 0, (guarded_side.name, answer)
        assert _is_owed(began_s, 49_000, answer.throttle_time_ms), (guarded_side.name, answer)


def _is_owed(began_s: float, debt_ms: int, wait_ms: int) -> bool:
    """Whether no more of the debt is paid than time went by, however slow the machine is."""
    return debt_ms - 1000 * (time.monotonic() - began_s) - 1 <= wait_ms <= debt_ms


_numbers = itertools.count()


def _create_until_throttled(side: Side) -> int:
    """1.1 partitions can be saved up: the first 4 that are counted make a debt of 29 s."""
    request = _create(f"quota-{next(_numbers)}", 4)
    answer = side.get(request, 7, client="maker")
    wait_ms = int(answer.throttle_time_ms)
    assert answer.topics[0].error_code == (89 if wait_ms else 0), answer
    return wait_ms


@pytest.mark.thorough
def test_config_tools_alter_quotas(guarded: GuardedPair) -> None:
    """The tool of 3.9.1 asks a broker, that of 2.8.0 writes to ZooKeeper."""
    ours = guarded.ours
    rates = "producer_byte_rate=1024,consumer_byte_rate=2048"
    who = ["--entity-type", "users", "--entity-name", "by tool", "--entity-type", "clients"]
    said = tool(
        CONFIG, ours.admin.bootstrap, "--alter", "--add-config", rates, *who, "--entity-default"
    )
    assert "Completed updating config for user by tool" in said
    output = tool(CONFIG, ours.admin.bootstrap, "--describe", *who, "--entity-default")
    assert "Quota configs for user-principal 'by tool', the default client-id are " in output
    assert "consumer_byte_rate=2048.0" in output
    old = ["--alter", "--add-config", "request_percentage=150", "--entity-type", "clients"]
    old_tool(CONFIG, ours.admin.zookeeper, *old, "--entity-name", "by old tool")
    answer = ours.admin.ask(describe(("client-id", 0, "by old tool"), strict=True), 1)
    assert answer["entries"][0]["values"] == [{"key": "request_percentage", "value": 150.0}]


QUICK_HOST = "127.0.0.78"
LATER_HOST = "127.0.0.79"
VERSIONS = b"\0\0\0\x0d\0\x12\0\0\0\0\0\x01\0\x03abc"


def test_connection_rate_of_an_address_is_limited(guarded: GuardedPair) -> None:
    """Ten at once make one a second over ten windows; the next is closed within a second, and
    other addresses come in as they like."""

    def ask(guarded_side: Guarded) -> list[str]:
        quick, later = (
            guarded_side.admin.from_host(QUICK_HOST),
            guarded_side.admin.from_host(LATER_HOST),
        )
        for host in (QUICK_HOST, LATER_HOST):
            guarded_side.admin.until(
                lambda host=host: _limit_connections(guarded_side, host, 1.0) == "NONE"
            )  # type: ignore[misc]
        # A description shows ZooKeeper's state; the broker applies changes in their order.
        guarded_side.admin.until(lambda: later.raw(VERSIONS) == CLOSED)
        with ThreadPoolExecutor(12) as at_once:  # within the second that one more would be let in
            answers = at_once.map(lambda _: quick.raw(VERSIONS), range(12))
            kinds = sorted(type(answer).__name__ for answer in answers)
        return [*kinds, type(guarded_side.admin.raw(VERSIONS)).__name__]

    answered = guarded.assert_same(ask)
    assert answered == ["bytes"] * 10 + ["str"] * 2 + ["bytes"]
    for host in (QUICK_HOST, LATER_HOST):
        guarded.run_on_both(
            lambda guarded_side, host=host: _limit_connections(guarded_side, host, None)
        )  # type: ignore[misc]


def _limit_connections(guarded_side: Guarded, host: str, value: float | None) -> Any:
    request = alter([("ip", host)], {"connection_creation_rate": value})
    return guarded_side.admin.ask(request, 1)["entries"][0]["error_code"]


LEAST: Sequence[tuple[str, float]] = [
    ("producer_byte_rate", 0.0),
    ("producer_byte_rate", 1.0),
    ("request_percentage", 0.0),
    ("controller_mutation_rate", 0.0),
    ("controller_mutation_rate", 1e-9),
]


@pytest.mark.parametrize(("quota", "value"), LEAST)
def test_least_quotas_are_answered_alike(guarded: GuardedPair, quota: str, value: float) -> None:
    """What there is to wait is for ever, or does not fit into an answer."""
    topic, client = f"quota-least-{quota}-{value}-{RUN}", f"least-{quota}-{value}"
    asked: list[tuple[Message, int]] = [(produce(topic, batch([b"x" * 900_000])), 9)] * 4
    if quota == "controller_mutation_rate":
        asked = [
            (_create(f"{topic}-{number}", 1), version) for number, version in enumerate((7, 7, 5))
        ]

    def ask(guarded_side: Guarded) -> list[Any]:
        guarded_side.admin.create(topic)
        _set(guarded_side, client, **{quota: value})
        answers = []
        for request, version in asked:
            answer = guarded_side.muted.ask(request, version, client=client)
            guarded_side.muted.close()
            errors = [topic["error_code"] for topic in answer.get("topics", ())]
            answers.append((answer["throttle_time_ms"] > 0, errors))
        return answers

    guarded.assert_same(ask)
