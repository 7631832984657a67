"""Apache Kafka's own programs that read and write, unmodified, on our cluster."""

from __future__ import annotations

import json
import re
import subprocess

import pytest

from tests.conformance.pair import Pair
from tests.conformance.side import Side
from urteil.harness.dependencies.kafka import kafka_tool

TOOLS = "org.apache.kafka.tools"
TIMEOUT_S = 90


@pytest.fixture
def side(pair: Pair) -> Side:
    return pair.ours


@pytest.fixture
def topic(pair: Pair) -> str:
    return pair.ours.create(pair.name("tools"), [(1, 2, 3)])


def run(main_class: str, *args: str, given: str = "") -> str:
    """What the tool prints; its failure fails the test."""
    done = subprocess.run(
        kafka_tool(main_class, args),
        input=given,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, f"{main_class} {args}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def console_producer(side: Side, topic: str, lines: str, *more: str) -> None:
    keyed = ["--property", "parse.key=true", "--property", "key.separator=|"]
    args = ["--bootstrap-server", side.bootstrap, "--topic", topic, *keyed, *more]
    run("kafka.tools.ConsoleProducer", *args, given=lines)


def console_consumer(side: Side, topic: str, count: int, *more: str) -> list[str]:
    args = ["--bootstrap-server", side.bootstrap, "--topic", topic, "--max-messages", str(count)]
    return run(f"{TOOLS}.consumer.ConsoleConsumer", *args, *more).splitlines()


def events(output: str, name: str) -> list[dict[str, object]]:
    rows = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    return [row for row in rows if row.get("name") == name]


def test_second_console_consumer_resumes_at_the_committed_offset(side: Side, topic: str) -> None:
    """The second consumer of a group begins where the first one ended."""
    lines = [f"key {n}|value {n}" for n in range(20)]
    codec = ["--compression-codec", "zstd", "--request-required-acks", "all"]
    console_producer(side, topic, "\n".join(lines) + "\n", *codec)
    shown = ["--property", "print.key=true", "--property", "key.separator=|"]
    group = ["--group", f"{topic}-group", "--from-beginning", *shown]
    isolated = ["--isolation-level", "read_committed"]
    assert console_consumer(side, topic, 12, *group) == lines[:12]
    assert console_consumer(side, topic, 8, *group, *isolated) == lines[12:]
    place = ["--partition", "0", "--offset", "17", "--property", "print.offset=true"]
    assert console_consumer(side, topic, 1, *place) == ["Offset:17\tvalue 17"]


@pytest.mark.thorough
def test_verifiable_consumer_reads_each_record_of_the_verifiable_producer(
    side: Side, topic: str
) -> None:
    where = ["--bootstrap-server", side.bootstrap, "--topic", topic, "--max-messages", "100"]
    sent = run(f"{TOOLS}.VerifiableProducer", *where, "--acks", "-1")
    assert [event["acked"] for event in events(sent, "tool_data")] == [100]
    read = run(f"{TOOLS}.VerifiableConsumer", *where, "--group-id", f"{topic}-group")
    counts = [event["count"] for event in events(read, "records_consumed")]
    assert sum(map(int, map(str, counts))) == 100
    assert all(event["success"] for event in events(read, "offsets_committed"))


@pytest.mark.thorough
@pytest.mark.parametrize("more", [["--use-group-metadata", "--group-mode"], []])
def test_transactional_copier_copies_each_record_once(
    pair: Pair, side: Side, topic: str, more: list[str]
) -> None:
    copies = side.create(pair.name("copy"), [(2, 3, 1)])
    where = ["--bootstrap-server", side.bootstrap, "--topic", topic, "--max-messages", "90"]
    run(f"{TOOLS}.VerifiableProducer", *where)
    args = ["--broker-list", side.bootstrap, "--input-topic", topic, "--input-partition", "0"]
    args += ["--output-topic", copies, "--transactional-id", f"{topic}-txn"]
    args += ["--consumer-group", f"{topic}-group", "--transaction-size", "20"]
    output = run(f"{TOOLS}.TransactionalMessageCopier", *args, "--enable-random-aborts", *more)
    last = [json.loads(line) for line in output.splitlines() if line.startswith("{")][-1]
    assert (last["remaining"], last["consumed"]) == (0, 90)
    read = console_consumer(
        side, copies, 90, "--from-beginning", "--isolation-level", "read_committed"
    )
    assert sorted(map(int, read)) == list(range(90))


@pytest.mark.thorough
def test_end_to_end_latency_tool_completes(side: Side, topic: str) -> None:
    output = run(f"{TOOLS}.EndToEndLatency", side.bootstrap, topic, "200", "all", "100")
    assert re.search(r"Percentiles: 50th = \d+, 99th = \d+, 99\.9th = \d+", output), output


@pytest.mark.thorough
def test_client_compatibility_tool_finds_every_feature_of_this_version(
    side: Side, topic: str
) -> None:
    features = ("offsets-for-times", "cluster-id", "create-topics", "describe-acls")
    args = [f"--{name}-supported=true" for name in features]
    args += ["--describe-configs-supported=true", "--idempotent-producer-supported=true"]
    args += ["--expect-record-too-large-exception=false", "--num-cluster-nodes=3"]
    where = ["--bootstrap-server", side.bootstrap, "--topic", topic]
    assert "SUCCESS" in run(f"{TOOLS}.ClientCompatibilityTest", *where, *args)


@pytest.mark.thorough
def test_api_versions_tool_prints_the_same_versions(pair: Pair) -> None:
    """As its tool prints them, API by API, and whether a client of 3.9.1 can use them."""

    def printed_versions(side: Side) -> set[str]:
        lines = run("kafka.admin.BrokerApiVersionsCommand", "--bootstrap-server", side.bootstrap)
        return {line.strip(" \t,") for line in lines.splitlines() if "(id:" not in line}

    ours, theirs = printed_versions(pair.ours), printed_versions(pair.theirs)
    assert ours == theirs
