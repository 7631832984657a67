"""`urteil tool`: Kafka's tools on standing clusters, as a user types them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.waiting import LONG_S, until
from urteil.cli.main import exit_code
from urteil.harness import standing
from urteil.harness.kafka_tools import TOOLS
from urteil.harness.standing import StandingRequest

URTEIL = (sys.executable, "-m", "urteil", "tool")


@pytest.fixture
def no_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


@pytest.mark.usefixtures("no_cluster")
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("kafka-topic --list", "did you mean kafka-topics or "),
        ("topics --list", "known: kafka-acls, kafka-broker-api-versions, "),
        ("kafka-topics --list", "no cluster stands; urteil cluster up starts one"),
        ("kafka-topics --cluster play --list", "no cluster play stands"),
        ("kafka-topics --release 2.7 --list", "'3.9.1', '2.8.0'"),
        ("kafka-transactions --release 2.8.0 list", "use --release 3.9.1"),
        ("kafka-preferred-replica-election", "use --release 2.8.0"),
    ],
)
def test_wrong_usage_exits_254_and_names_the_mend(
    line: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(["tool", *line.split()]) == 254
    assert message in capsys.readouterr().err


def test_tools_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["tool"]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.split("\n\n")[0].splitlines()]
    assert listed == sorted(TOOLS)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    name = f"tool-{os.getpid()}"
    standing.start(
        StandingRequest(name=name, brokers=1, sasl="plain", acl=True),
        tmp_path_factory.mktemp("tool"),
    )
    yield name
    standing.stop_standing(name)


def run(words: list[str], given: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*URTEIL, *words], input=given, capture_output=True, text=True, timeout=LONG_S
    )


@pytest.mark.thorough
def test_tools_run_on_a_cluster_with_users(secured: str) -> None:
    where = ["--cluster", secured]
    created = run(["kafka-topics", *where, "--create", "--topic", "alice-tool"])
    assert (created.returncode, created.stdout) == (0, "Created topic alice-tool.\n")
    topic = ["--topic", "alice-tool"]
    assert run(["kafka-console-producer", *where, *topic], "hello\n").returncode == 0
    read = run(
        ["kafka-console-consumer", "--as", "alice", *where, *topic, "--group", "alice-group",
         "--from-beginning", "--max-messages", "1"],
    )  # fmt: skip
    assert read.stdout == "hello\n"
    assert run(["kafka-topics", *where, "--as", "bob", "--list"]).stdout.strip() == ""
    refused = run(["kafka-topics", *where, "--as", "bob", "--create", "--topic", "alice-other"])
    assert refused.returncode == 1
    assert "Authorization failed" in refused.stdout
    old = run(["kafka-topics", *where, "--release", "2.8.0", "--list"])
    assert "alice-tool" in old.stdout
    assert "no user 'carol'; it has " in run(["kafka-topics", *where, "--as", "carol"]).stderr


@pytest.mark.thorough
def test_interrupt_ends_the_tool(secured: str) -> None:
    argv = [*URTEIL, "kafka-console-consumer", "--cluster", secured, "--topic", "alice-tool"]
    argv += ["--from-beginning"]
    consumer = subprocess.Popen(
        argv,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell starts background jobs with SIGINT ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        until(lambda: "java" in Path(f"/proc/{consumer.pid}/exe").resolve().name, "java")
        assert consumer.stdout is not None
        assert consumer.stdout.readline() == "hello\n"
        consumer.send_signal(signal.SIGINT)
        out, _ = consumer.communicate(timeout=LONG_S)
    finally:
        consumer.kill()
        consumer.wait()
    assert out == ""
    assert consumer.returncode == 130
