"""More questions about transactions: of what is asked twice, by nobody, or in the midst."""

from __future__ import annotations

from kafka.protocol.admin import DescribeTransactionsRequest, ListTransactionsRequest

from urteil.harness.conformance.question import (
    Brokers,
    Question,
    awaited,
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
from urteil.harness.conformance.transactions import Writer, begun, writer

Told = tuple[int, str]


def _written(brokers: Brokers, leader: int, one: Writer) -> int:
    """The error of a record of this producer to the topic with its name."""
    data = batch(b"x", transactional=True, producer=(one.id, one.epoch))
    told = produce(brokers, leader, one.name, 0, data, transactional_id=one.name)
    return int(appended(told).error_code)


def _again(brokers: Brokers, name: str) -> Told:
    """What is committed is committed, whoever asks again, and aborted by nobody."""
    leader, _ = led(brokers, name)
    one = begun(brokers, name)
    check("AddPartitionsToTxn", max(one.add({name: [0]})))
    check("Produce", _written(brokers, leader, one))
    told = [one.end()]
    state = one.settled("CompleteCommit")
    told += [one.end(), one.end(commit=False)]
    return one.node, f"{names(told)}, {state} {one.listed()}"


def _nobodys(brokers: Brokers, name: str) -> Told:
    """Another producer's id, and a transactional id that nobody has."""
    led(brokers, name)
    one = begun(brokers, name)
    one.id += 1_000_000
    stranger = writer(brokers, f"{name}-never")
    stranger.id, stranger.epoch = one.id, 0
    told = [*one.add({name: [0]}), one.end(), *stranger.add({name: [0]}), stranger.end()]
    asked = DescribeTransactionsRequest[0](transactional_ids=[stranger.name])
    told.append(brokers.ask(stranger.node, asked).transaction_states[0].error_code)
    return one.node, names(told)


def _by_state(brokers: Brokers, name: str) -> Told:
    led(brokers, name)
    one = begun(brokers, name)
    check("AddPartitionsToTxn", max(one.add({name: [0]})))

    def listed(state: str) -> bool:
        asked = ListTransactionsRequest[0](state_filters=[state], producer_id_filters=[])
        told = brokers.ask(one.node, asked)
        check("ListTransactions", told.error_code)
        return name in {each.transactional_id for each in told.transaction_states}

    told = f"Ongoing {listed('Ongoing')}, Empty {listed('Empty')}"
    check("EndTxn", one.end())
    return one.node, told


def _bumped(brokers: Brokers, name: str) -> Told:
    """A producer that asks for its next epoch has it, also when it asks again, and no more once
    another one was given after it (KIP-360)."""
    one = begun(brokers, name)
    first = (one.id, one.epoch)
    told = []
    for _ in range(2):
        check("InitProducerId", one.init(known=first))
        told.append(one.epoch - first[1])
    second = (one.id, one.epoch)
    check("InitProducerId", one.init(known=second))
    told.append(one.epoch - first[1])
    return one.node, f"{told}, {name_of(one.init(known=first))}"


def _taken_over(brokers: Brokers, name: str) -> Told:
    """Whoever takes a transactional id has the transaction before ended: what it wrote is told
    to be aborted, and lies before the last stable offset."""
    leader, _ = led(brokers, name)
    one = begun(brokers, name)
    check("AddPartitionsToTxn", max(one.add({name: [0]})))
    check("Produce", _written(brokers, leader, one))
    producer = one.id
    stable = [list_offset(brokers, leader, name, LATEST, committed=True).offset]
    other = writer(brokers, name)
    awaited(lambda: name_of(other.init()), "No")
    stable.append(list_offset(brokers, leader, name, LATEST, committed=True).offset)
    (part,) = parts_of(fetch(brokers, leader, name, {0: 0}, committed=True))
    told = [(one.producer_id - producer, one.first_offset) for one in part.aborted_transactions]
    late = name_of(_written(brokers, leader, one))
    return one.node, f"{stable}, {told}, {late}"


def _not_added(brokers: Brokers, name: str) -> Told:
    """A record of a transaction that does not have its partition (KIP-890)."""
    leader, _ = led(brokers, name)
    one = begun(brokers, name)
    told = name_of(_written(brokers, leader, one))
    return one.node, f"{told}, {list_offset(brokers, leader, name, LATEST).offset}"


ENDINGS = (
    Question(
        about="a transaction that is committed, committed again, aborted",
        answer="No, No, InvalidTxnState, CompleteCommit CompleteCommit",
        ask=_again,
    ),
    Question(
        about="what another producer may do with a transactional id, and with one of nobody",
        answer="InvalidProducerIdMapping, InvalidProducerIdMapping, InvalidProducerIdMapping, "
        "InvalidProducerIdMapping, TransactionalIdNotFound",
        ask=_nobodys,
    ),
    Question(
        about="ListTransactions of one that lasts, by two states",
        answer="Ongoing True, Empty False",
        ask=_by_state,
    ),
    Question(
        about="epochs that a producer asks for, again, and too late (KIP-360)",
        answer="[1, 1, 2], ProducerFenced",
        ask=_bumped,
    ),
    Question(
        about="a transaction whose transactional id another producer takes",
        answer="[0, 2], [(0, 0)], InvalidProducerEpoch",
        ask=_taken_over,
    ),
    Question(
        about="a record of a transaction that does not have its partition",
        answer="InvalidTxnState, 0",
        ask=_not_added,
    ),
)
