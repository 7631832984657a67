"""The Java client's transactional producer: its journal says what happened, its errors say what a
caller may do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from kafka import KafkaAdminClient

from tests.broker.nodes import STEADY, Nodes
from tests.broker.zookeeper.server import ZooKeeperServer
from tests.harness.clients.specs import spec_of
from tests.waiting import until
from urteil.harness.clients.libraries import jvm
from urteil.harness.clients.libraries.jvm import JvmExited, JvmHung
from urteil.harness.clients.transactions.journaled_transactions import Transactions
from urteil.harness.evidence.journal import JournalReader, JournalWriter, Ok, TxnEnd

ALONE = {
    "transaction_state_log_num_partitions": "1",
    "transaction_state_log_replication_factor": "1",
    "transaction_state_log_min_isr": "1",
}

PAUSE_S = 35.0
CALLER = """
import sys, threading
from urteil.harness.clients.libraries import jvm

jvm.ANSWER_TICKS = 30
program = jvm.Jvm("TransactionalClient", [sys.argv[1]])
program.call("open")
print("calling", flush=True)
ended = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
while not ended.is_set():
    program.call("open")
print("answered", flush=True)
"""
"""Calls its JVM again and again until its standard input ends."""


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, ...]]:
    folder = tmp_path_factory.mktemp("java")
    (zookeeper := folder / "zookeeper").mkdir()
    server = ZooKeeperServer(zookeeper)
    server.start()
    try:
        with Nodes(folder, server, "/java", 1, **STEADY, **ALONE) as nodes:
            admin = KafkaAdminClient(bootstrap_servers=nodes.bootstrap)
            admin.create_topics({"t": {"num_partitions": 1, "replication_factor": 1}})
            admin.close()
            yield tuple(nodes.bootstrap)
    finally:
        server.kill()


def transactions(bootstrap: tuple[str, ...], journal: Path, client: str = "t1") -> Transactions:
    spec = spec_of(client, "txn")
    load = msgspec.structs.replace(spec.workload, client="java")
    spec = msgspec.structs.replace(spec, bootstrap=bootstrap, workload=load, journal=str(journal))
    ready = Transactions(spec, JournalWriter(journal))
    until(ready.ensure_ready, "the producer has an id")
    return ready


def settings_file(folder: Path) -> str:
    """Of a producer whose cluster does not exist: to open it needs none."""
    file = folder / "producer.properties"
    file.write_text("bootstrap.servers=127.0.0.1:1\ntransactional.id=t\n")
    return str(file)


def entries(journal: Path, kind: type) -> list[Any]:
    return [entry for entry in JournalReader(journal) if isinstance(entry, kind)]


@pytest.mark.thorough
def test_transactions_are_journaled_as_they_end(bootstrap: tuple[str, ...], tmp_path: Path) -> None:
    journal = tmp_path / "t1.jsonl"
    writer = transactions(bootstrap, journal)
    for commit in (True, False):
        assert writer.begin()
        assert writer.send("t", 0, "key")
        assert writer.end(commit=commit) == ("committed" if commit else "aborted")
    assert [end.outcome for end in entries(journal, TxnEnd)] == ["committed", "aborted"]
    assert [ok.offset for ok in entries(journal, Ok)] == [0, 2], "a marker is between them"


@pytest.mark.thorough
def test_second_producer_of_an_id_fences_the_first(
    bootstrap: tuple[str, ...], tmp_path: Path
) -> None:
    first = transactions(bootstrap, tmp_path / "t2.jsonl", "t2")
    second = transactions(bootstrap, tmp_path / "t2.2.jsonl", "t2")
    assert first.begin()
    first.send("t", 0, "key")
    assert first.end(commit=True) in ("fenced", "aborted")
    assert second.begin()
    assert second.send("t", 0, "key")
    assert second.end(commit=True) == "committed"


@pytest.fixture
def jvms(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[str]]:
    """The JVMs of the test in the order of their start."""
    started: list[subprocess.Popen[str]] = []

    def start(*args: Any, **kwargs: Any) -> subprocess.Popen[str]:
        started.append(subprocess.Popen(*args, **kwargs))
        return started[-1]

    monkeypatch.setattr(jvm, "Popen", start)
    return started


@pytest.mark.thorough
def test_ended_jvm_is_named(
    bootstrap: tuple[str, ...], tmp_path: Path, jvms: list[subprocess.Popen[str]]
) -> None:
    writer = transactions(bootstrap, tmp_path / "t3.jsonl", "t3")
    (process,) = jvms
    process.send_signal(signal.SIGTERM)
    assert writer.begin(), "a stop of the client is not one of its JVM"
    process.kill()
    with pytest.raises(JvmExited, match="exited with code -9"):
        writer.end(commit=True)


@pytest.mark.thorough
@pytest.mark.parametrize("length", [0, 1 << 20], ids=["short command", "command beyond a pipe"])
def test_jvm_without_an_answer_is_killed_and_named(
    length: int,
    tmp_path: Path,
    jvms: list[subprocess.Popen[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program = jvm.Jvm("TransactionalClient", [settings_file(tmp_path)])
    program.call("open")
    (process,) = jvms
    process.send_signal(signal.SIGSTOP)
    monkeypatch.setattr(jvm, "ANSWER_TICKS", 2)
    with pytest.raises(JvmHung, match="the Java client did not answer `begin` within 2 s"):
        program.call("begin", "x" * length)
    assert process.returncode == -signal.SIGKILL


@pytest.mark.thorough
def test_paused_client_with_its_jvm_misses_no_answer(tmp_path: Path) -> None:
    client = subprocess.Popen(
        [sys.executable, "-c", CALLER, settings_file(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert client.stdin is not None
    assert client.stdout is not None
    try:
        assert client.stdout.readline() == "calling\n"
        os.killpg(client.pid, signal.SIGSTOP)
        threading.Event().wait(PAUSE_S)
        os.killpg(client.pid, signal.SIGCONT)
        client.stdin.close()
        assert client.stdout.read() == "answered\n"
    finally:
        os.killpg(client.pid, signal.SIGKILL)
        client.wait()


@pytest.mark.parametrize(
    ("outcome", "retriable", "wants_abort", "fatal"),
    [
        ("7 retriable TimeoutException: late", True, False, False),
        ("90 fatal ProducerFencedException: fenced", False, False, True),
        ("120 abortable TransactionAbortableException: abort", False, True, False),
    ],
)
def test_error_says_what_the_caller_may_do(
    outcome: str, retriable: bool, wants_abort: bool, fatal: bool
) -> None:
    error = jvm.error_of(outcome)
    assert error is not None
    assert (error.retriable(), error.txn_requires_abort()) == (retriable, wants_abort)
    assert error.fatal() == fatal
    assert error.str() == outcome.split(" ", 2)[2]


def test_success_is_no_error() -> None:
    assert jvm.error_of("0") is None
