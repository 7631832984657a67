"""The transactional producers of a client: confluent-kafka's, or the Java client's."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from confluent_kafka import KafkaError, Producer

from urteil.harness.clients.libraries import JAVA
from urteil.harness.clients.libraries.confluent_producer import producer_config
from urteil.harness.clients.libraries.java_transactions import JavaProducer, TransactionalJvm
from urteil.harness.clients.spec import ClientSpec, transaction_timeout_ms, transactional_id


def producer_factory(spec: ClientSpec) -> Callable[[], Producer | JavaProducer]:
    """What creates the client's next producer, which is not initialised yet."""
    if spec.workload.client == JAVA:
        return partial(JavaProducer, TransactionalJvm(spec))
    load = spec.workload
    timeout_ms = transaction_timeout_ms(load)
    config = producer_config(spec) | {
        "transactional.id": transactional_id(spec),
        "transaction.timeout.ms": timeout_ms,
        "message.timeout.ms": min(load.delivery_timeout_ms, timeout_ms),
        "error_cb": _ignore_error,
    }
    return partial(Producer, config)


def _ignore_error(_error: KafkaError) -> None:
    """An error callback that does nothing. Without one, a fatal error is raised inside other
    callbacks."""
