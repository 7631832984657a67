"""InitProducerId, and what a log remembers of a producer's sequences."""

from __future__ import annotations

from typing import Any

from tests.conformance.questions.registry import Asker, Subject
from tests.conformance.questions.stage import gives_producer_ids
from tests.conformance.records import batch, produce
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.messages import InitProducerIdRequest

IDS = Subject("InitProducerId", ApiKey.INIT_PRODUCER_ID)
SEQUENCES = Subject("Producer sequences", ApiKey.PRODUCE)

KNOWN = {
    "none": (-1, -1), "id": (5, -1), "epoch": (-1, 3), "both": (5, 3), "last epoch": (5, 32767),
    "-2": (-2, -2),
}  # fmt: skip


@IDS.each("known", KNOWN)
def init(asker: Asker, known: tuple[int, int]) -> Any:
    request = InitProducerIdRequest(
        transactional_id=None,
        transaction_timeout_ms=1000,
        producer_id=known[0],
        producer_epoch=known[1],
    )
    gives_producer_ids(asker.side)
    return asker.ask(request)


@IDS.question("an empty transactional id")
def empty(asker: Asker) -> Any:
    return asker.ask(InitProducerIdRequest(transactional_id="", transaction_timeout_ms=1000))


Step = tuple[int, int, int]  # epoch, first sequence, records

STEPS: dict[str, list[Step]] = {
    "in order": [(0, 0, 2), (0, 2, 1), (0, 3, 5)],
    "not from 0": [(0, 7, 1), (0, 8, 1)],
    "gap": [(0, 0, 2), (0, 3, 1), (0, 2, 1)],
    "duplicate of the last": [(0, 0, 2), (0, 0, 2), (0, 2, 1)],
    "duplicate of five back": [(0, n, 1) for n in range(5)] + [(0, 0, 1)],
    "duplicate of six back": [(0, n, 1) for n in range(6)] + [(0, 0, 1)],
    "overlap": [(0, 0, 3), (0, 1, 2), (0, 0, 2)],
    "old epoch": [(3, 0, 1), (2, 1, 1), (3, 1, 1)],
    "new epoch from 0": [(0, 0, 1), (1, 0, 1), (1, 1, 1)],
    "new epoch not from 0": [(0, 0, 1), (1, 1, 1)],
    "duplicate of an old epoch": [(0, 0, 1), (1, 0, 1), (0, 0, 1)],
    "wrap": [(0, (1 << 31) - 2, 2), (0, 0, 1)],
    "wrap inside a batch": [(0, (1 << 31) - 2, 4), (0, 2, 1), (0, (1 << 31) - 2, 4)],
    "wrap without reaching the end": [(0, (1 << 31) - 2, 1), (0, 0, 1)],
    "negative sequence": [(0, -2, 1)],
    "negative epoch": [(-2, 0, 1)],
}


@SEQUENCES.each("batches", STEPS, versions=(3, 9))
def sequences(asker: Asker, steps: list[Step]) -> Any:
    topic = asker.topic()
    return [
        asker.ask(
            produce(
                topic,
                batch([b"v"] * count, producer_id=4242, producer_epoch=epoch, base_sequence=first),
            )
        )
        for epoch, first, count in steps
    ]


@SEQUENCES.question("two batches of a producer in one request", since=3)
def two_batches(asker: Asker) -> Any:
    """Apache Kafka takes one batch a partition of a producer with an id."""
    two = batch([b"v"], producer_id=99, producer_epoch=0, base_sequence=0)
    two += batch([b"v"], producer_id=99, producer_epoch=0, base_sequence=1)
    return asker.ask(produce(asker.topic(), two))
