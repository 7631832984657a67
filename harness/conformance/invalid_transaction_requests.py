"""Questions about transactions: repeated requests, requests of other producers, and late ones."""

from __future__ import annotations

from kafka.protocol.admin import DescribeTransactionsRequest, ListTransactionsRequest

from urteil.harness.conformance.question import (
    BrokerAnswer,
    Brokers,
    Question,
    await_value,
    check,
    name_of,
    names,
)
from urteil.harness.conformance.records import (
    LATEST,
    create_led_topic,
    fetch,
    fetched_partitions,
    make_batch,
    produce,
    produced_partition,
    read_offset,
)
from urteil.harness.conformance.transactions import (
    TransactionalProducer,
    make_producer,
    start_producer,
)


def _produce(brokers: Brokers, leader: int, producer: TransactionalProducer) -> int:
    """The error of a record of this producer to the topic with its name."""
    data = make_batch(b"x", transactional=True, producer=(producer.id, producer.epoch))
    response = produce(brokers, leader, producer.name, 0, data, transactional_id=producer.name)
    return int(produced_partition(response).error_code)


def _commit_twice(brokers: Brokers, name: str) -> BrokerAnswer:
    """A committed transaction can be committed again, and not be aborted."""
    leader, _ = create_led_topic(brokers, name)
    producer = start_producer(brokers, name)
    check("AddPartitionsToTxn", max(producer.add({name: [0]})))
    check("Produce", _produce(brokers, leader, producer))
    results = [producer.end()]
    state = producer.await_state("CompleteCommit")
    results += [producer.end(), producer.end(commit=False)]
    return producer.node, f"{names(results)}, {state} {producer.list_state()}"


def _use_unknown_ids(brokers: Brokers, name: str) -> BrokerAnswer:
    """Another producer's id, and an unknown transactional id."""
    create_led_topic(brokers, name)
    producer = start_producer(brokers, name)
    producer.id += 1_000_000
    stranger = make_producer(brokers, f"{name}-never")
    stranger.id, stranger.epoch = producer.id, 0
    results = [
        *producer.add({name: [0]}),
        producer.end(),
        *stranger.add({name: [0]}),
        stranger.end(),
    ]
    request = DescribeTransactionsRequest[0](transactional_ids=[stranger.name])
    results.append(brokers.send(stranger.node, request).transaction_states[0].error_code)
    return producer.node, names(results)


def _list_by_state(brokers: Brokers, name: str) -> BrokerAnswer:
    create_led_topic(brokers, name)
    producer = start_producer(brokers, name)
    check("AddPartitionsToTxn", max(producer.add({name: [0]})))

    def is_listed(state: str) -> bool:
        request = ListTransactionsRequest[0](state_filters=[state], producer_id_filters=[])
        response = brokers.send(producer.node, request)
        check("ListTransactions", response.error_code)
        return name in {each.transactional_id for each in response.transaction_states}

    text = f"Ongoing {is_listed('Ongoing')}, Empty {is_listed('Empty')}"
    check("EndTxn", producer.end())
    return producer.node, text


def _bump_epoch(brokers: Brokers, name: str) -> BrokerAnswer:
    """A producer that requests its next epoch gets it, also when it repeats the request, until a
    later epoch was assigned (KIP-360)."""
    producer = start_producer(brokers, name)
    first = (producer.id, producer.epoch)
    results = []
    for _ in range(2):
        check("InitProducerId", producer.init(known=first))
        results.append(producer.epoch - first[1])
    second = (producer.id, producer.epoch)
    check("InitProducerId", producer.init(known=second))
    results.append(producer.epoch - first[1])
    return producer.node, f"{results}, {name_of(producer.init(known=first))}"


def _take_over_id(brokers: Brokers, name: str) -> BrokerAnswer:
    """A producer that takes a transactional id ends the open transaction: its records are aborted
    and below the last stable offset."""
    leader, _ = create_led_topic(brokers, name)
    transactional_producer = start_producer(brokers, name)
    check("AddPartitionsToTxn", max(transactional_producer.add({name: [0]})))
    check("Produce", _produce(brokers, leader, transactional_producer))
    producer = transactional_producer.id
    stable = [read_offset(brokers, leader, name, LATEST, committed=True).offset]
    other = make_producer(brokers, name)
    await_value(brokers, lambda: name_of(other.init()), "No")
    stable.append(read_offset(brokers, leader, name, LATEST, committed=True).offset)
    (part,) = fetched_partitions(fetch(brokers, leader, name, {0: 0}, committed=True))
    results = [
        (aborted_transaction.producer_id - producer, aborted_transaction.first_offset)
        for aborted_transaction in part.aborted_transactions
    ]
    late = name_of(_produce(brokers, leader, transactional_producer))
    return transactional_producer.node, f"{stable}, {results}, {late}"


def _produce_unadded(brokers: Brokers, name: str) -> BrokerAnswer:
    """A record of a transaction that does not include its partition (KIP-890)."""
    leader, _ = create_led_topic(brokers, name)
    producer = start_producer(brokers, name)
    result = name_of(_produce(brokers, leader, producer))
    return producer.node, f"{result}, {read_offset(brokers, leader, name, LATEST).offset}"


ENDINGS = (
    Question(
        about="EndTxn: commit, commit again, abort",
        answer="No, No, InvalidTxnState, CompleteCommit CompleteCommit",
        ask=_commit_twice,
    ),
    Question(
        about="requests with another producer's id, and with an unknown transactional id",
        answer="InvalidProducerIdMapping, InvalidProducerIdMapping, InvalidProducerIdMapping, "
        "InvalidProducerIdMapping, TransactionalIdNotFound",
        ask=_use_unknown_ids,
    ),
    Question(
        about="ListTransactions of an open transaction, by two states",
        answer="Ongoing True, Empty False",
        ask=_list_by_state,
    ),
    Question(
        about="InitProducerId for a next epoch, repeated, and too late (KIP-360)",
        answer="[1, 1, 2], ProducerFenced",
        ask=_bump_epoch,
    ),
    Question(
        about="a transaction whose transactional id another producer initialises",
        answer="[0, 2], [(0, 0)], InvalidProducerEpoch",
        ask=_take_over_id,
    ),
    Question(
        about="a record of a transaction that does not include its partition",
        answer="InvalidTxnState, 0",
        ask=_produce_unadded,
    ),
)
