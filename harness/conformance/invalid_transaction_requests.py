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
    appended,
    batch,
    fetch,
    led,
    list_offset,
    parts_of,
    produce,
)
from urteil.harness.conformance.transactions import TransactionalProducer, begun, writer


def _written(brokers: Brokers, leader: int, one: TransactionalProducer) -> int:
    """The error of a record of this producer to the topic with its name."""
    data = batch(b"x", transactional=True, producer=(one.id, one.epoch))
    response = produce(brokers, leader, one.name, 0, data, transactional_id=one.name)
    return int(appended(response).error_code)


def _again(brokers: Brokers, name: str) -> BrokerAnswer:
    """A committed transaction can be committed again, and not be aborted."""
    leader, _ = led(brokers, name)
    one = begun(brokers, name)
    check("AddPartitionsToTxn", max(one.add({name: [0]})))
    check("Produce", _written(brokers, leader, one))
    results = [one.end()]
    state = one.await_state("CompleteCommit")
    results += [one.end(), one.end(commit=False)]
    return one.node, f"{names(results)}, {state} {one.listed()}"


def _nobodys(brokers: Brokers, name: str) -> BrokerAnswer:
    """Another producer's id, and an unknown transactional id."""
    led(brokers, name)
    one = begun(brokers, name)
    one.id += 1_000_000
    stranger = writer(brokers, f"{name}-never")
    stranger.id, stranger.epoch = one.id, 0
    results = [*one.add({name: [0]}), one.end(), *stranger.add({name: [0]}), stranger.end()]
    request = DescribeTransactionsRequest[0](transactional_ids=[stranger.name])
    results.append(brokers.ask(stranger.node, request).transaction_states[0].error_code)
    return one.node, names(results)


def _by_state(brokers: Brokers, name: str) -> BrokerAnswer:
    led(brokers, name)
    one = begun(brokers, name)
    check("AddPartitionsToTxn", max(one.add({name: [0]})))

    def listed(state: str) -> bool:
        request = ListTransactionsRequest[0](state_filters=[state], producer_id_filters=[])
        response = brokers.ask(one.node, request)
        check("ListTransactions", response.error_code)
        return name in {each.transactional_id for each in response.transaction_states}

    text = f"Ongoing {listed('Ongoing')}, Empty {listed('Empty')}"
    check("EndTxn", one.end())
    return one.node, text


def _bumped(brokers: Brokers, name: str) -> BrokerAnswer:
    """A producer that requests its next epoch gets it, also when it repeats the request, until a
    later epoch was assigned (KIP-360)."""
    one = begun(brokers, name)
    first = (one.id, one.epoch)
    results = []
    for _ in range(2):
        check("InitProducerId", one.init(known=first))
        results.append(one.epoch - first[1])
    second = (one.id, one.epoch)
    check("InitProducerId", one.init(known=second))
    results.append(one.epoch - first[1])
    return one.node, f"{results}, {name_of(one.init(known=first))}"


def _taken_over(brokers: Brokers, name: str) -> BrokerAnswer:
    """A producer that takes a transactional id ends the open transaction: its records are aborted
    and below the last stable offset."""
    leader, _ = led(brokers, name)
    one = begun(brokers, name)
    check("AddPartitionsToTxn", max(one.add({name: [0]})))
    check("Produce", _written(brokers, leader, one))
    producer = one.id
    stable = [list_offset(brokers, leader, name, LATEST, committed=True).offset]
    other = writer(brokers, name)
    await_value(lambda: name_of(other.init()), "No")
    stable.append(list_offset(brokers, leader, name, LATEST, committed=True).offset)
    (part,) = parts_of(fetch(brokers, leader, name, {0: 0}, committed=True))
    results = [(one.producer_id - producer, one.first_offset) for one in part.aborted_transactions]
    late = name_of(_written(brokers, leader, one))
    return one.node, f"{stable}, {results}, {late}"


def _not_added(brokers: Brokers, name: str) -> BrokerAnswer:
    """A record of a transaction that does not include its partition (KIP-890)."""
    leader, _ = led(brokers, name)
    one = begun(brokers, name)
    result = name_of(_written(brokers, leader, one))
    return one.node, f"{result}, {list_offset(brokers, leader, name, LATEST).offset}"


ENDINGS = (
    Question(
        about="EndTxn: commit, commit again, abort",
        answer="No, No, InvalidTxnState, CompleteCommit CompleteCommit",
        ask=_again,
    ),
    Question(
        about="requests with another producer's id, and with an unknown transactional id",
        answer="InvalidProducerIdMapping, InvalidProducerIdMapping, InvalidProducerIdMapping, "
        "InvalidProducerIdMapping, TransactionalIdNotFound",
        ask=_nobodys,
    ),
    Question(
        about="ListTransactions of an open transaction, by two states",
        answer="Ongoing True, Empty False",
        ask=_by_state,
    ),
    Question(
        about="InitProducerId for a next epoch, repeated, and too late (KIP-360)",
        answer="[1, 1, 2], ProducerFenced",
        ask=_bumped,
    ),
    Question(
        about="a transaction whose transactional id another producer initialises",
        answer="[0, 2], [(0, 0)], InvalidProducerEpoch",
        ask=_taken_over,
    ),
    Question(
        about="a record of a transaction that does not include its partition",
        answer="InvalidTxnState, 0",
        ask=_not_added,
    ),
)
