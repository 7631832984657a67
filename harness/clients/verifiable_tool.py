"""Kafka's verifiable clients: JVMs of Apache Kafka's own that tell what they do, line by line.

VerifiableProducer and VerifiableConsumer are what Apache Kafka's system tests run. They are
started as children in the client's own process group, so that whatever is done to the client is
done to them.
"""

from __future__ import annotations

import json
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from urteil.harness.clients.client_main import Stop
from urteil.harness.clients.spec import (
    METADATA_MAX_AGE_MS,
    RECONNECT_BACKOFF_MAX_MS,
    ClientSpec,
)
from urteil.harness.dependencies.kafka import kafka_tool
from urteil.harness.scenario import Scenario

NAME = "verifiable"
STEP_S = 0.05
CONFIG = {"VerifiableProducer": "--producer.config", "VerifiableConsumer": "--consumer.config"}
Told = dict[str, Any]


UNFIT = {
    "add_partitions": "more partitions move keys, and the tool does not tell where it sends",
    "slow_poll": "nothing makes VerifiableConsumer stand still",
}
"""Faults that these clients are not made for."""


class ToolEnded(Exception):
    """The JVM ended though nobody had asked it to."""


class Tool:
    """One such JVM of a client; `settings` are given to it by a file beside the journal."""

    def __init__(
        self, spec: ClientSpec, main_class: str, args: Sequence[str], settings: Mapping[str, object]
    ) -> None:
        self._name = main_class
        self._told: queue.SimpleQueue[Told | None] = queue.SimpleQueue()
        file = Path(spec.journal).with_suffix(".properties")
        file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        common = ["--bootstrap-server", ",".join(spec.bootstrap), CONFIG[main_class], str(file)]
        argv = kafka_tool(f"org.apache.kafka.tools.{main_class}", [*common, *args])
        for number in (signal.SIGUSR1, signal.SIGUSR2):
            signal.signal(number, signal.SIG_IGN)  # `slow_poll` would end the JVM, not stall it
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
        self._process = subprocess.Popen(argv, stdout=subprocess.PIPE)
        threading.Thread(target=self._listen, daemon=True).start()
        self.ended = False

    def told(self, wait_s: float = STEP_S) -> Iterator[Told]:
        """What it told since the last time; waits for the first of it."""
        try:
            one = self._told.get(timeout=wait_s)
            while one is not None:
                yield one
                one = self._told.get_nowait()
            self.ended = True
        except queue.Empty:
            return

    def terminate(self) -> None:
        """Ask it to flush and end."""
        self._process.terminate()

    def kill(self) -> None:
        self._process.kill()

    def check(self, stop: Stop) -> None:
        """ToolEnded when it has told its last, and was not to end."""
        if self.ended and not stop.asked():
            raise ToolEnded(f"{self._name} ended with exit code {self._process.wait()}")

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(b"{"):
                self._told.put(json.loads(line))
        self._told.put(None)


def check_fit(scenario: Scenario) -> None:
    """ValueError where a fault of the scenario, named or drawn, is none for these clients."""
    faults = [one.fault for one in scenario.faults]
    faults += [one.fault for one in scenario.draw.choices] if scenario.draw else []
    for fault in faults:
        if fault in UNFIT:
            raise ValueError(f"{scenario.name} has {fault}: {UNFIT[fault]}")


def connection_config(spec: ClientSpec) -> dict[str, object]:
    """What `spec.connection_config` says, in Apache Kafka's names."""
    return {
        "client.id": spec.client,
        "request.timeout.ms": spec.workload.request_timeout_ms,
        "reconnect.backoff.ms": 50,
        "reconnect.backoff.max.ms": RECONNECT_BACKOFF_MAX_MS,
        "retry.backoff.ms": 50,
        "metadata.max.age.ms": METADATA_MAX_AGE_MS,
    }


def topic_of(spec: ClientSpec) -> tuple[str, int]:
    """The topic of a client, for the tools know one each, and how many partitions it has."""
    number = spec.number - 1
    topic = spec.topics[number % len(spec.topics)]
    return topic.name, topic.partitions


def monotonic_ns(told: Told) -> int:
    """When it was told, on the clock of the evidence: the begin of that millisecond."""
    return int(told["timestamp"]) * 1_000_000 - (time.time_ns() - time.monotonic_ns())
