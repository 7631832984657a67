"""The transactional producer of the Java client, with the methods of confluent-kafka's Producer.

Only the Java client from 4.0 on speaks transactions v2 (KIP-890), in which each transaction has an
epoch of its own.
"""

from __future__ import annotations

import contextlib
import queue
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from confluent_kafka import KafkaError, KafkaException

from urteil.harness.clients.libraries.jvm import Jvm, error_of
from urteil.harness.clients.libraries.verifiable_producer import producer_config
from urteil.harness.clients.spec import ClientSpec, transaction_timeout_ms, transactional_id

CALL_MS = 5_000

OnDelivery = Callable[[KafkaError | None, "Delivered"], object]


@dataclass(frozen=True, slots=True)
class Delivered:
    """A record that was sent."""

    at: tuple[int, int]

    def partition(self) -> int:
        return self.at[0]

    def offset(self) -> int:
        return self.at[1]


class TransactionalJvm(Jvm):
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
        super().__init__("TransactionalClient", [str(file)])
        self._waiting: dict[int, OnDelivery] = {}
        self._numbers = count()

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
            self._report(self.reports.get(wait_s > 0, wait_s))
            while True:
                self._report(self.reports.get_nowait())

    def _report(self, delivery: str) -> None:
        number, partition, offset, outcome = delivery.split(" ", 3)
        on_delivery = self._waiting.pop(int(number))
        on_delivery(error_of(outcome), Delivered((int(partition), int(offset))))


class JavaProducer:
    """A new producer of the client's JVM, in place of the last one. The Java client limits the time
    of each call itself, by CALL_MS, so no call takes a timeout here."""

    def __init__(self, jvm: TransactionalJvm) -> None:
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
