"""Apache Kafka's verifiable clients: JVMs that report their operations line by line.

VerifiableProducer and VerifiableConsumer belong to Apache Kafka's system tests. They run as
children in the client's own process group, so that a fault on the client affects them too.
"""

from __future__ import annotations

import json
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from urteil.chaos.effects import Effect
from urteil.chaos.waiting import until
from urteil.harness.child_process import await_exit
from urteil.harness.clients.spec import (
    METADATA_MAX_AGE_MS,
    RECONNECT_BACKOFF_MAX_MS,
    ClientSpec,
)
from urteil.harness.clients.stop import Stop
from urteil.harness.dependencies.kafka import kafka_tool
from urteil.harness.evidence.fault_effects import named_effects
from urteil.harness.scenario import Scenario

NAME = "verifiable"
STEP_S = 0.05
KILL_S = 10.0
CONFIG = {"VerifiableProducer": "--producer.config", "VerifiableConsumer": "--consumer.config"}
ToolMessage = dict[str, Any]


UNSUPPORTED_EFFECTS = {
    Effect.ADDS_PARTITIONS: "more partitions move keys, and the tool does not report partitions of "
    "sends",
    Effect.STOPS_POLLS: "nothing stops VerifiableConsumer between two polls",
}
"""Effects of faults that these clients do not support, with the reason."""


class ToolExited(Exception):
    """The JVM exited although no stop was requested."""


class Tool:
    """One JVM of a client. It reads `settings` from a file beside the journal."""

    def __init__(
        self, spec: ClientSpec, main_class: str, args: Sequence[str], settings: Mapping[str, object]
    ) -> None:
        self._name = main_class
        self._messages: queue.SimpleQueue[ToolMessage | None] = queue.SimpleQueue()
        file = Path(spec.journal).with_suffix(".properties")
        file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        common = ["--bootstrap-server", ",".join(spec.bootstrap), CONFIG[main_class], str(file)]
        argv = kafka_tool(f"org.apache.kafka.tools.{main_class}", [*common, *args])
        for number in (signal.SIGUSR1, signal.SIGUSR2):
            signal.signal(number, signal.SIG_IGN)  # `slow_poll` would kill the JVM, not pause it
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
        self._process = subprocess.Popen(argv, stdout=subprocess.PIPE)
        threading.Thread(target=self._read_output, daemon=True).start()
        self.ended = False

    def messages(self, wait_s: float = STEP_S) -> Iterator[ToolMessage]:
        """The messages since the last call; waits for the first one."""
        try:
            message = self._messages.get(timeout=wait_s)
            while message is not None:
                yield message
                message = self._messages.get_nowait()
            self.ended = True
        except queue.Empty:
            return

    def end(self, process_messages: Callable[[], object], *, deadline_s: float) -> None:
        """Let it flush and exit while its last messages are processed; SIGKILL past the
        deadline."""

        def has_ended() -> bool:
            process_messages()
            return self.ended

        self._process.terminate()
        if not until(has_ended, deadline_s=deadline_s, poll_s=0.0):
            self._process.kill()
            until(has_ended, deadline_s=KILL_S, poll_s=0.0)

    def check(self, stop: Stop) -> None:
        """ToolExited if the JVM exited without a requested stop."""
        if self.ended and not stop.is_set():
            code = await_exit(self._process, deadline_s=KILL_S)
            raise ToolExited(f"{self._name} ended with exit code {code}")

    def _read_output(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(b"{"):
                self._messages.put(json.loads(line))
        self._messages.put(None)


def check_faults(scenario: Scenario) -> None:
    """ValueError if the scenario has a fault, named or drawn, that these clients do not support."""
    faults = [fault.fault for fault in scenario.faults]
    faults += [choice.fault for choice in scenario.draw.choices] if scenario.draw else []
    for fault in faults:
        for effect in sorted(named_effects(fault) & UNSUPPORTED_EFFECTS.keys()):
            raise ValueError(f"{scenario.name} has {fault}: {UNSUPPORTED_EFFECTS[Effect(effect)]}")


def connection_config(spec: ClientSpec) -> dict[str, object]:
    """The settings of `spec.connection_config` by Apache Kafka's names."""
    return {
        "client.id": spec.client,
        "request.timeout.ms": spec.workload.request_timeout_ms,
        "reconnect.backoff.ms": 50,
        "reconnect.backoff.max.ms": RECONNECT_BACKOFF_MAX_MS,
        "retry.backoff.ms": 50,
        "metadata.max.age.ms": METADATA_MAX_AGE_MS,
    }


def topic_of(spec: ClientSpec) -> tuple[str, int]:
    """The topic of a client (the tools support one each) and its number of partitions."""
    number = spec.number - 1
    topic = spec.topics[number % len(spec.topics)]
    return topic.name, topic.partitions


def monotonic_ns(message: ToolMessage) -> int:
    """The time of a message on the clock of the evidence: the begin of its millisecond."""
    return int(message["timestamp"]) * 1_000_000 - (time.time_ns() - time.monotonic_ns())
