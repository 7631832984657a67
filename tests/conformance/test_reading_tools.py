"""Apache Kafka's tools that only look: ReplicaVerificationTool, and ZooKeeper's own shell."""

from __future__ import annotations

import json
import re
import subprocess

import pytest
from kafka import KafkaProducer

from tests.conformance.conftest import Pair
from tests.conformance.side import Side
from urteil.harness.dependencies.kafka import kafka_tool

VERIFY = "org.apache.kafka.tools.ReplicaVerificationTool"
SHELL = "org.apache.zookeeper.ZooKeeperMain"
RECORDS = 300
DEADLINE_S = 60


@pytest.fixture
def ours(pair: Pair) -> Side:
    return pair.ours


def test_replica_verification_tool_finds_equal_replicas(pair: Pair, ours: Side) -> None:
    topic = pair.name("verified")
    ours.create(topic, [(1, 2, 3), (2, 3, 1)])
    producer = KafkaProducer(bootstrap_servers=ours.bootstrap, acks="all")
    for number in range(RECORDS):
        producer.send(topic, b"%d" % number, partition=number % 2)
    producer.close()
    options = ["--topics-include", topic, "--time", "-2", "--report-interval-ms", "500"]
    argv = kafka_tool(VERIFY, ["--broker-list", ours.bootstrap, *options])
    with subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            assert process.stdout is not None
            output = ""
            for (
                line
            ) in process.stdout:  # it goes on for ever; the session's timeout ends a silent one
                output += line
                match = re.search(
                    rf"max lag is (\d+) for partition {topic}-\d at offset (\d+)", line
                )
                if match and int(match[2]) == RECORDS // 2:
                    break
        finally:
            process.kill()
    assert match is not None, output
    assert match[1] == "0", output
    assert "has different" not in output, output


def shell(side: Side, *command: str) -> str:
    """The last line that ZooKeeper's shell prints for a command."""
    argv = kafka_tool(SHELL, ["-server", side.zookeeper, *command])
    done = subprocess.run(argv, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip().splitlines()[-1]


@pytest.mark.thorough
def test_zookeeper_shell_shows_the_same_znodes(pair: Pair) -> None:
    assert pair.assert_same(lambda side: shell(side, "ls", "/brokers/ids")) == "[1, 2, 3]"
    for path in ("/controller", "/brokers/ids/2"):
        pair.assert_same(lambda side, path=path: list(json.loads(shell(side, "get", path))))
