"""Questions about transactions, to their coordinators and to leaders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kafka.protocol.admin import (
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    ListTransactionsRequest,
)
from kafka.protocol.producer import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
)

from urteil.harness.conformance.group_member import member
from urteil.harness.conformance.question import (
    TRANSACTIONAL_ID,
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
from urteil.harness.conformance.required_settings import MOST_TRANSACTION_MS

TIMEOUT_MS = 30_000
LONG_MS, LONG_EVERY_S, LONG_PARTITIONS = 1_500, 0.5, 14
"""A timeout, the interval of added partitions, and enough partitions to exceed the timeout several
times."""
BEING_ENDED = 51
"""CONCURRENT_TRANSACTIONS: the coordinator is about to end the transaction."""


@dataclass(slots=True, kw_only=True)
class TransactionalProducer:
    """A transactional producer. `id` and `epoch` are those of the last initialisation."""

    brokers: Brokers
    name: str
    node: int
    id: int = -1
    epoch: int = -1

    def init(self, timeout_ms: int = TIMEOUT_MS, known: tuple[int, int] = (-1, -1)) -> int:
        """The error of InitProducerId."""
        response = self.brokers.send(
            self.node,
            InitProducerIdRequest[4](
                transactional_id=self.name, transaction_timeout_ms=timeout_ms,
                producer_id=known[0], producer_epoch=known[1],
            ),
        )  # fmt: skip
        if not response.error_code:
            self.id, self.epoch = response.producer_id, response.producer_epoch
        return int(response.error_code)

    def add(self, places: Mapping[str, list[int]], epoch: int | None = None) -> list[int]:
        """The errors of AddPartitionsToTxn, by topic and partition."""
        kinds = AddPartitionsToTxnRequest
        response = self.brokers.send(
            self.node,
            kinds[3](
                v3_and_below_transactional_id=self.name,
                v3_and_below_producer_id=self.id,
                v3_and_below_producer_epoch=self.epoch if epoch is None else epoch,
                v3_and_below_topics=[
                    kinds.AddPartitionsToTxnTopic(name=topic, partitions=partitions)
                    for topic, partitions in places.items()
                ],
            ),
        )
        results = sorted(
            response.results_by_topic_v3_and_below, key=lambda result: str(result.name)
        )
        return [
            result.partition_error_code
            for topic in results
            for result in topic.results_by_partition
        ]

    def end(self, *, commit: bool = True, epoch: int | None = None) -> int:
        response = self.brokers.send(
            self.node,
            EndTxnRequest[3](
                transactional_id=self.name, producer_id=self.id, committed=commit,
                producer_epoch=self.epoch if epoch is None else epoch,
            ),
        )  # fmt: skip
        return int(response.error_code)

    def move(self, group: str, topic: str, positions: Mapping[int, int]) -> None:
        """Commit a group's offsets in the transaction."""
        request = AddOffsetsToTxnRequest[2](
            transactional_id=self.name, producer_id=self.id, producer_epoch=self.epoch,
            group_id=group,
        )  # fmt: skip
        check("AddOffsetsToTxn", self.brokers.send(self.node, request).error_code)
        kinds = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
        partitions = [
            kinds.TxnOffsetCommitRequestPartition(
                partition_index=p, committed_offset=offset, committed_metadata=""
            )
            for p, offset in positions.items()
        ]
        commit = TxnOffsetCommitRequest[2](
            transactional_id=self.name, group_id=group, producer_id=self.id,
            producer_epoch=self.epoch, topics=[kinds(name=topic, partitions=partitions)],
        )  # fmt: skip
        response = self.brokers.send(self.brokers.coordinator(group), commit)
        for partition in response.topics[0].partitions:
            check("TxnOffsetCommit", partition.error_code)

    def describe(self) -> str:
        request = DescribeTransactionsRequest[0](transactional_ids=[self.name])
        (result,) = self.brokers.send(self.node, request).transaction_states
        check("DescribeTransactions", result.error_code)
        places = sorted(p for topic in result.topics for p in topic.partitions)
        return f"{result.transaction_state} {result.transaction_timeout_ms} {places}"

    def list_state(self) -> str:
        request = ListTransactionsRequest[0](state_filters=[], producer_id_filters=[self.id])
        response = self.brokers.send(self.node, request)
        check("ListTransactions", response.error_code)
        results = [
            transaction_state
            for transaction_state in response.transaction_states
            if transaction_state.transactional_id == self.name
        ]
        return ", ".join(result.transaction_state for result in results)

    def await_state(self, state: str) -> str:
        """The state of the transaction when its markers are written."""
        return await_value(self.brokers, self.list_state, state)


def make_producer(brokers: Brokers, name: str) -> TransactionalProducer:
    return TransactionalProducer(
        brokers=brokers, name=name, node=brokers.coordinator(name, TRANSACTIONAL_ID)
    )


def start_producer(brokers: Brokers, name: str) -> TransactionalProducer:
    producer = make_producer(brokers, name)
    check("InitProducerId", producer.init())
    return producer


def _initialise_with_timeouts(brokers: Brokers, name: str) -> BrokerAnswer:
    producer = make_producer(brokers, name)
    results = [
        producer.init(MOST_TRANSACTION_MS + 1),
        producer.init(0),
        producer.init(MOST_TRANSACTION_MS),
    ]
    return producer.node, names(results)


def _exceed_timeout(brokers: Brokers, name: str) -> BrokerAnswer:
    """A transaction that adds partitions beyond its timeout; its id had another
    transaction before."""
    create_led_topic(brokers, name, LONG_PARTITIONS)
    producer = start_producer(brokers, name)
    check("InitProducerId", producer.init(LONG_MS))
    began_s, errors = brokers.environment.monotonic_s(), []
    for p in range(LONG_PARTITIONS):
        errors = producer.add({name: [p]})
        if max(errors) not in (0, BEING_ENDED):
            break
        brokers.environment.pause(LONG_EVERY_S)
    early = brokers.environment.monotonic_s() - began_s < LONG_MS / 1000
    return producer.node, f"{names(errors)}{', too early' if early else ''}"


def _describe_transaction(brokers: Brokers, name: str) -> BrokerAnswer:
    """A transaction over two partitions, described while it is open and afterwards."""
    leader, _ = create_led_topic(brokers, name, 2)
    producer = start_producer(brokers, name)
    check("AddPartitionsToTxn", max(producer.add({name: [0, 1]})))
    for p in range(2):
        data = make_batch(b"x", transactional=True, producer=(producer.id, producer.epoch))
        response = produce(brokers, leader, name, p, data, transactional_id=name)
        check("Produce", produced_partition(response).error_code)
    open_offsets = _find_open_offsets(brokers, leader, name, producer.id)
    during = f"{producer.describe()} {producer.list_state()} {open_offsets}"
    for readers, committed in (("all", False), ("committed", True)):
        answers = _fetch_both(brokers, leader, name, committed=committed)
        during += f", {readers} {sum(bool(part.records) for part in answers)}"
    ends = [
        read_offset(brokers, leader, name, LATEST, committed=committed).offset
        for committed in (True, False)
    ]
    check("EndTxn", producer.end())
    after = producer.await_state("CompleteCommit")
    ends += [
        read_offset(brokers, leader, name, LATEST, committed=committed).offset
        for committed in (True, False)
    ]
    shown = [part.last_stable_offset for part in _fetch_both(brokers, leader, name, committed=True)]
    return producer.node, f"{during}, {after}, {ends}, {shown}"


def _fetch_both(brokers: Brokers, leader: int, name: str, *, committed: bool) -> list[Any]:
    response = fetch(brokers, leader, name, {0: 0, 1: 0}, committed=committed)
    return sorted(
        fetched_partitions(response),
        key=lambda fetched_partition: int(fetched_partition.partition_index),
    )


def _find_open_offsets(brokers: Brokers, leader: int, name: str, producer_id: int) -> list[int]:
    """Where this producer's transaction began, by partition (DescribeProducers)."""
    request = DescribeProducersRequest.TopicRequest(name=name, partition_indexes=[0, 1])
    response = (
        brokers.send(leader, DescribeProducersRequest[0](topics=[request])).topics[0].partitions
    )
    return [
        int(active_producer.current_txn_start_offset)
        for part in response
        for active_producer in part.active_producers
        if active_producer.producer_id == producer_id
    ]


def _fence_producer(brokers: Brokers, name: str) -> BrokerAnswer:
    create_led_topic(brokers, name)
    producer = start_producer(brokers, name)
    known = (producer.id, producer.epoch)
    check("InitProducerId", producer.init())
    later = f"{producer.id - known[0]} {producer.epoch - known[1]}"
    errors = [
        *producer.add({name: [0]}, known[1]),
        producer.end(epoch=known[1]),
        producer.init(known=known),
    ]
    return producer.node, f"{later}, {names(errors)}"


def _add_unknown_partition(brokers: Brokers, name: str) -> BrokerAnswer:
    create_led_topic(brokers, name)
    producer = start_producer(brokers, name)
    result = producer.add({name: [0], f"{name}-never": [0]})
    return producer.node, names(result)


def _end_without_begin(brokers: Brokers, name: str) -> BrokerAnswer:
    producer = start_producer(brokers, name)
    return producer.node, name_of(producer.end())


def _get_producer_ids(brokers: Brokers, name: str) -> BrokerAnswer:
    """Producer ids are unique over all brokers."""
    request = InitProducerIdRequest[4]
    results = [
        brokers.send(
            node,
            request(
                transactional_id=None, transaction_timeout_ms=TIMEOUT_MS, producer_id=-1,
                producer_epoch=-1,
            ),
        )
        for node in (*brokers.nodes, *brokers.nodes)
    ]  # fmt: skip
    for result in results:
        check("InitProducerId", result.error_code)
    ids = [result.producer_id for result in results]
    epochs = {result.producer_epoch for result in results}
    return brokers.nodes[0], "each its own" if len(set(ids)) == len(ids) and epochs == {0} else (
        f"{ids} with {epochs}"
    )


def _fetch_aborted(brokers: Brokers, name: str) -> BrokerAnswer:
    """The aborted transactions in responses for readers of committed records: in a committed
    transaction, in an aborted one, and after both. (Each batch has a segment of its own, because
    its timestamp is years before its marker's.)"""
    leader, _ = create_led_topic(brokers, name)
    producer = start_producer(brokers, name)
    for number, commit in enumerate((True, False)):
        check("AddPartitionsToTxn", max(producer.add({name: [0]})))
        data = make_batch(
            b"x", transactional=True, producer=(producer.id, producer.epoch), sequence=number
        )
        response = produce(brokers, leader, name, 0, data, transactional_id=name)
        check("Produce", produced_partition(response).error_code)
        check("EndTxn", producer.end(commit=commit))
        producer.await_state("CompleteCommit" if commit else "CompleteAbort")
    results = []
    for at in (0, 2, 4):
        (part,) = fetched_partitions(fetch(brokers, leader, name, {0: at}, committed=True))
        values = [
            f"{'its' if txn.producer_id == producer.id else txn.producer_id} "
            f"from {txn.first_offset}"
            for txn in part.aborted_transactions
        ]
        results.append(" ".join(values) or "none")
    return leader, ", ".join(results)


def _commit_offsets(brokers: Brokers, name: str) -> BrokerAnswer:
    """Offsets of two partitions: before the end, after a commit, after an abort."""
    create_led_topic(brokers, name, 2)
    reader, producer = member(brokers, name), start_producer(brokers, name)
    results = []
    for turn, commit in enumerate((True, False)):
        producer.move(name, name, {0: 10 + turn, 1: 20 + turn})
        results.append(reader.positions())
        check("EndTxn", producer.end(commit=commit))
        producer.await_state("CompleteCommit" if commit else "CompleteAbort")
        results.append(reader.positions())
    return reader.node, "; ".join(results)


TRANSACTIONS = (
    Question(
        about=f"transaction timeouts above transaction.max.timeout.ms, of 0, and of "
        f"{MOST_TRANSACTION_MS} ms",
        answer="InvalidTransactionTimeout, InvalidTransactionTimeout, No",
        ask=_initialise_with_timeouts,
    ),
    Question(
        about=f"a transaction with a timeout of {LONG_MS} ms to which partitions are "
        f"added for longer",
        answer="ProducerFenced",
        ask=_exceed_timeout,
    ),
    Question(
        about="descriptions of a transaction over two partitions, while it is open and afterwards",
        answer=f"Ongoing {TIMEOUT_MS} [0, 1] Ongoing [0, 0], all 2, committed 0, CompleteCommit, "
        "[0, 1, 2, 2], [2, 2]",
        ask=_describe_transaction,
    ),
    Question(
        about="requests of a fenced producer, and the id and epoch of its successor",
        answer="0 1, ProducerFenced, ProducerFenced, ProducerFenced",
        ask=_fence_producer,
    ),
    Question(
        about="AddPartitionsToTxn of an existing partition and a missing one",
        answer="OperationNotAttempted, UnknownTopicOrPartition",
        ask=_add_unknown_partition,
    ),
    Question(
        about="EndTxn without a transaction",
        answer="InvalidTxnState",
        ask=_end_without_begin,
    ),
    Question(about="producer ids from all brokers", answer="each its own", ask=_get_producer_ids),
    Question(
        about="aborted transactions in fetches of committed records: before, in and after them",
        answer="none, its from 2, none",
        ask=_fetch_aborted,
    ),
    Question(
        about="offsets committed in a transaction: before and after its commit, and its abort",
        answer="none; 0:10 1:20; 0:10 1:20; 0:10 1:20",
        ask=_commit_offsets,
    ),
)
