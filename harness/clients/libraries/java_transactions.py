"""The transactional producer of the Java client, with the methods of confluent-kafka's Producer.

A JVM executes commands and reports deliveries, a line each (compose/java-client). It runs in the
client's own process group, so that a fault on the client affects it too. Only the Java client from
4.0 on speaks transactions v2 (KIP-890), in which each transaction has an epoch of its own.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from subprocess import PIPE, Popen

from confluent_kafka import KafkaError, KafkaException

from urteil.harness.clients.libraries.verifiable_producer import producer_config
from urteil.harness.clients.spec import ClientSpec, transaction_timeout_ms, transactional_id
from urteil.harness.dependencies.java_client import java_client

CALL_MS = 5_000
UNTOUCHED = 'trap "" TERM USR1 USR2; exec "$@"'
"""The signals of a client are not for its JVM, which ends with its standard input."""

OnDelivery = Callable[[KafkaError | None, "Delivered"], object]


class JvmExited(Exception):
    """The JVM exited although its client still runs."""


@dataclass(frozen=True, slots=True)
class Delivered:
    """A record that was sent."""

    at: tuple[int, int]

    def partition(self) -> int:
        return self.at[0]

    def offset(self) -> int:
        return self.at[1]


class Jvm:
    """The JVM of one client."""

    def __init__(self, spec: ClientSpec) -> None:
        load = spec.workload
        timeout_ms = transaction_timeout_ms(load)
        file = Path(spec.journal).with_suffix(".properties")
        settings = producer_config(spec) | {
            "bootstrap.servers": ",".join(spec.bootstrap),
            "transactional.id": transactional_id(spec),
            "transaction.timeout.ms": timeout_ms,
            "delivery.timeout.ms": min(load.delivery_timeout_ms, timeout_ms),
            "max.block.ms": CALL_MS,
        }
        file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        argv = java_client("TransactionalClient", [str(file)])
        self._process = Popen(
            ["sh", "-c", UNTOUCHED, "sh", *argv],
            stdin=PIPE,
            stdout=PIPE,
            text=True,
        )
        self._outcomes: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._deliveries: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._waiting: dict[int, OnDelivery] = {}
        self._numbers = count()
        threading.Thread(target=self._read, daemon=True).start()

    def call(self, *words: object) -> None:
        """Execute a command. Raises KafkaException if it failed, JvmExited without an answer."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(" ".join(map(str, words)) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._exited() from None
        outcome = self._outcomes.get()
        if not outcome:
            raise self._exited()
        if (error := _error(outcome)) is not None:
            raise KafkaException(error)

    def send(self, on_delivery: OnDelivery, *words: object) -> None:
        """Send a record. Raises KafkaException if the library rejected it."""
        number = next(self._numbers)
        self._waiting[number] = on_delivery
        try:
            self.call("send", number, *words)
        except KafkaException:
            del self._waiting[number]
            raise

    def report_deliveries(self, wait_s: float) -> None:
        """Report the deliveries that have arrived, also those of earlier producers; waits for the
        first one."""
        with contextlib.suppress(queue.Empty):
            self._report(self._deliveries.get(wait_s > 0, wait_s))
            while True:
                self._report(self._deliveries.get_nowait())

    def _report(self, delivery: str) -> None:
        number, partition, offset, outcome = delivery.split(" ", 3)
        on_delivery = self._waiting.pop(int(number))
        on_delivery(_error(outcome), Delivered((int(partition), int(offset))))

    def _exited(self) -> JvmExited:
        return JvmExited(f"the Java client exited with code {self._process.wait()}")

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            word, _, rest = line.rstrip("\n").partition(" ")
            (self._outcomes if word == "done" else self._deliveries).put(rest)
        self._outcomes.put("")


class JavaProducer:
    """A new producer of the client's JVM, in place of the last one. The Java client limits the time
    of each call itself, by CALL_MS, so no call takes a timeout here."""

    def __init__(self, jvm: Jvm) -> None:
        self._jvm = jvm
        jvm.call("open")

    def init_transactions(self, _timeout_s: float) -> None:
        self._jvm.call("init")

    def begin_transaction(self) -> None:
        self._jvm.call("begin")

    def commit_transaction(self, _timeout_s: float) -> None:
        self._jvm.call("commit")

    def abort_transaction(self, _timeout_s: float) -> None:
        self._jvm.call("abort")

    def produce(
        self,
        topic: str,
        value: bytes,
        key: bytes,
        partition: int,
        *,
        timestamp: int,
        on_delivery: OnDelivery,
    ) -> None:
        payload = (b64encode(part).decode() for part in (key, value))
        self._jvm.send(on_delivery, topic, partition, timestamp, *payload)

    def poll(self, wait_s: float) -> None:
        self._jvm.report_deliveries(wait_s)


def _error(outcome: str) -> KafkaError | None:
    """The error of an outcome of the program, None for success."""
    code, _, rest = outcome.partition(" ")
    if code == "0":
        return None
    kind, _, reason = rest.partition(" ")
    return KafkaError(int(code), reason, kind == "fatal", kind == "retriable", kind == "abortable")
