"""One program a client, against our cluster and against Apache Kafka's: the same outcome."""

from __future__ import annotations

import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.clients import tools
from tests.conformance.pair import Pair

TIMEOUT_S = 120
CLIENTS = {
    "kafka-python": lambda: tools.python("kafka_python"),
    "confluent-kafka": lambda: tools.python("confluent_kafka"),
    "aiokafka": lambda: tools.python("aiokafka"),
    "java-3.9.1": lambda: tools.in_java("3.9.1"),
    "java-4.1.1": lambda: tools.in_java("4.1.1"),
    "kafkajs": tools.kafkajs,
    "franz-go": lambda: tools.in_go("franz"),
    "sarama": lambda: tools.in_go("sarama"),
}
SECOND = {"java-4.1.1", "kafkajs", "sarama"}
"""The default command has another client of the same language, or none of it."""


def records(numbers: list[int]) -> list[list[str]]:
    return [[f"value {n}", f"key {n}", str(n)] for n in numbers]


IN_EVERY_LANGUAGE = {
    "administration": {"retention": "3600000", "again": "exists", "brokers": [1, 2, 3]},
    "produce": {"last": [29, 29, 29]},
    "consume": {"records": records([n for first in range(3) for n in range(first, 90, 3)])},
    "group": {"read": 90, "committed": [30, 30, 30], "state": "EMPTY"},
    "transaction": {"read_committed": 100, "read_uncommitted": 110, "offset": 7},
}
WITH_KAFKA_GO = {
    key: programs for key, programs in IN_EVERY_LANGUAGE.items() if key != "transaction"
}
WITH_KCAT = {
    "administration": {"brokers": [1, 2, 3]},
    "produce": {"end": "30"},
    "consume": {"records": records(list(range(30)))},
    "group": {"read": [30, 0]},
}


def outcomes(pair: Pair, argv: list[str], kind: str) -> list[Any]:
    """What the program prints at our cluster and at Apache Kafka's."""
    name = pair.name(kind)
    with ThreadPoolExecutor(2) as pool:
        return list(
            pool.map(lambda side: outcome([*argv, side.bootstrap, name]), (pair.ours, pair.theirs))
        )


def outcome(argv: list[str]) -> Any:
    done = subprocess.run(argv, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    print(done.stderr)  # seen where the test fails
    assert done.returncode == 0, f"{argv}\n{done.stdout}\n{done.stderr}"
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    "client",
    [
        pytest.param(client, marks=[pytest.mark.thorough] if client in SECOND else [])
        for client in CLIENTS
    ],
)
def test_client_has_the_same_outcomes_on_both_clusters(pair: Pair, client: str) -> None:
    ours, theirs = outcomes(pair, CLIENTS[client](), client)
    assert theirs == IN_EVERY_LANGUAGE
    assert ours == theirs


@pytest.mark.thorough
def test_kafka_go_has_the_same_outcomes_on_both_clusters(pair: Pair) -> None:
    ours, theirs = outcomes(pair, tools.in_go("kafkago"), "kafka-go")
    assert theirs == WITH_KAFKA_GO
    assert ours == theirs


def test_kcat_has_the_same_outcomes_on_both_clusters(pair: Pair) -> None:
    ours, theirs = outcomes(pair, tools.kcat(), "kcat")
    assert theirs == WITH_KCAT
    assert ours == theirs


@pytest.mark.thorough
def test_oldest_java_client_has_the_same_outcomes_on_both_clusters(pair: Pair) -> None:
    """Message format 0, whose lz4 frames have checksums of their own."""
    ours, theirs = outcomes(pair, [*tools.in_old_java(), "lz4"], "java-0.9.0.1")
    assert theirs == {"last": 99, "read": 100, "same": True, "committed": 100}
    assert ours == theirs
