"""Questions about transactions, to their coordinators and to who leads."""

from __future__ import annotations

import threading
import time
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
    OF_TRANSACTIONS,
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
from urteil.harness.conformance.required_settings import MOST_TRANSACTION_MS

Told = tuple[int, str]
TIMEOUT_MS = 30_000
LONG_MS, LONG_EVERY_S, LONG_PARTITIONS = 1_500, 0.5, 14
"""Several times its timeout, and the time between two looks of the coordinator."""
BEING_ENDED = 51
"""CONCURRENT_TRANSACTIONS: its coordinator is about to."""


@dataclass(slots=True, kw_only=True)
class Writer:
    """A transactional producer; `id` and `epoch` are of its last initialisation."""

    brokers: Brokers
    name: str
    node: int
    id: int = -1
    epoch: int = -1

    def init(self, timeout_ms: int = TIMEOUT_MS, known: tuple[int, int] = (-1, -1)) -> int:
        """The error."""
        told = self.brokers.ask(
            self.node,
            InitProducerIdRequest[4](
                transactional_id=self.name, transaction_timeout_ms=timeout_ms,
                producer_id=known[0], producer_epoch=known[1],
            ),
        )  # fmt: skip
        if not told.error_code:
            self.id, self.epoch = told.producer_id, told.producer_epoch
        return int(told.error_code)

    def add(self, places: Mapping[str, list[int]], epoch: int | None = None) -> list[int]:
        """The errors of AddPartitionsToTxn, by topic and partition."""
        kinds = AddPartitionsToTxnRequest
        told = self.brokers.ask(
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
        results = sorted(told.results_by_topic_v3_and_below, key=lambda one: str(one.name))
        return [one.partition_error_code for topic in results for one in topic.results_by_partition]

    def end(self, *, commit: bool = True, epoch: int | None = None) -> int:
        told = self.brokers.ask(
            self.node,
            EndTxnRequest[3](
                transactional_id=self.name, producer_id=self.id, committed=commit,
                producer_epoch=self.epoch if epoch is None else epoch,
            ),
        )  # fmt: skip
        return int(told.error_code)

    def move(self, group: str, topic: str, positions: Mapping[int, int]) -> None:
        """A group's positions, within the transaction."""
        asked = AddOffsetsToTxnRequest[2](
            transactional_id=self.name, producer_id=self.id, producer_epoch=self.epoch,
            group_id=group,
        )  # fmt: skip
        check("AddOffsetsToTxn", self.brokers.ask(self.node, asked).error_code)
        kinds = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
        parts = [
            kinds.TxnOffsetCommitRequestPartition(
                partition_index=p, committed_offset=offset, committed_metadata=""
            )
            for p, offset in positions.items()
        ]
        commit = TxnOffsetCommitRequest[2](
            transactional_id=self.name, group_id=group, producer_id=self.id,
            producer_epoch=self.epoch, topics=[kinds(name=topic, partitions=parts)],
        )  # fmt: skip
        told = self.brokers.ask(self.brokers.coordinator(group), commit)
        for one in told.topics[0].partitions:
            check("TxnOffsetCommit", one.error_code)

    def described(self) -> str:
        asked = DescribeTransactionsRequest[0](transactional_ids=[self.name])
        (told,) = self.brokers.ask(self.node, asked).transaction_states
        check("DescribeTransactions", told.error_code)
        places = sorted(p for topic in told.topics for p in topic.partitions)
        return f"{told.transaction_state} {told.transaction_timeout_ms} {places}"

    def listed(self) -> str:
        asked = ListTransactionsRequest[0](state_filters=[], producer_id_filters=[self.id])
        told = self.brokers.ask(self.node, asked)
        check("ListTransactions", told.error_code)
        found = [one for one in told.transaction_states if one.transactional_id == self.name]
        return ", ".join(one.transaction_state for one in found)

    def settled(self, wanted: str) -> str:
        """What it is called in the end, once its markers are written."""
        return awaited(self.listed, wanted)


def writer(brokers: Brokers, name: str) -> Writer:
    return Writer(brokers=brokers, name=name, node=brokers.coordinator(name, OF_TRANSACTIONS))


def begun(brokers: Brokers, name: str) -> Writer:
    one = writer(brokers, name)
    check("InitProducerId", one.init())
    return one


def _too_long(brokers: Brokers, name: str) -> Told:
    one = writer(brokers, name)
    told = [one.init(MOST_TRANSACTION_MS + 1), one.init(0), one.init(MOST_TRANSACTION_MS)]
    return one.node, names(told)


def _kept_alive(brokers: Brokers, name: str) -> Told:
    """A transaction that takes in a partition more time and again, beyond its timeout; its id had
    another one before."""
    led(brokers, name, LONG_PARTITIONS)
    one = begun(brokers, name)
    check("InitProducerId", one.init(LONG_MS))
    began_s, errors = time.monotonic(), []
    for p in range(LONG_PARTITIONS):
        errors = one.add({name: [p]})
        if max(errors) not in (0, BEING_ENDED):
            break
        threading.Event().wait(LONG_EVERY_S)
    early = time.monotonic() - began_s < LONG_MS / 1000
    return one.node, f"{names(errors)}{', too early' if early else ''}"


def _whole(brokers: Brokers, name: str) -> Told:
    """A transaction over two partitions, described while it lasts and afterwards."""
    leader, _ = led(brokers, name, 2)
    one = begun(brokers, name)
    check("AddPartitionsToTxn", max(one.add({name: [0, 1]})))
    for p in range(2):
        data = batch(b"x", transactional=True, producer=(one.id, one.epoch))
        told = produce(brokers, leader, name, p, data, transactional_id=name)
        check("Produce", appended(told).error_code)
    during = f"{one.described()} {one.listed()} {_open_at(brokers, leader, name, one.id)}"
    for who, committed in (("all", False), ("committed", True)):
        parts = _read(brokers, leader, name, committed=committed)
        during += f", {who} {sum(bool(part.records) for part in parts)}"
    ends = [
        list_offset(brokers, leader, name, LATEST, committed=committed).offset
        for committed in (True, False)
    ]
    check("EndTxn", one.end())
    after = one.settled("CompleteCommit")
    ends += [
        list_offset(brokers, leader, name, LATEST, committed=committed).offset
        for committed in (True, False)
    ]
    shown = [part.last_stable_offset for part in _read(brokers, leader, name, committed=True)]
    return one.node, f"{during}, {after}, {ends}, {shown}"


def _read(brokers: Brokers, leader: int, name: str, *, committed: bool) -> list[Any]:
    told = fetch(brokers, leader, name, {0: 0, 1: 0}, committed=committed)
    return sorted(parts_of(told), key=lambda one: int(one.partition_index))


def _open_at(brokers: Brokers, leader: int, name: str, producer_id: int) -> list[int]:
    """Where this producer's transaction began, by partition (DescribeProducers)."""
    asked = DescribeProducersRequest.TopicRequest(name=name, partition_indexes=[0, 1])
    told = brokers.ask(leader, DescribeProducersRequest[0](topics=[asked])).topics[0].partitions
    return [
        int(one.current_txn_start_offset)
        for part in told
        for one in part.active_producers
        if one.producer_id == producer_id
    ]


def _shut_out(brokers: Brokers, name: str) -> Told:
    led(brokers, name)
    one = begun(brokers, name)
    known = (one.id, one.epoch)
    check("InitProducerId", one.init())
    later = f"{one.id - known[0]} {one.epoch - known[1]}"
    errors = [*one.add({name: [0]}, known[1]), one.end(epoch=known[1]), one.init(known=known)]
    return one.node, f"{later}, {names(errors)}"


def _unknown_partition(brokers: Brokers, name: str) -> Told:
    led(brokers, name)
    one = begun(brokers, name)
    told = one.add({name: [0], f"{name}-never": [0]})
    return one.node, names(told)


def _nothing_to_end(brokers: Brokers, name: str) -> Told:
    one = begun(brokers, name)
    return one.node, name_of(one.end())


def _ids(brokers: Brokers, name: str) -> Told:
    """No two producers have one id, whoever gives it."""
    request = InitProducerIdRequest[4]
    found = [
        brokers.ask(
            node,
            request(
                transactional_id=None, transaction_timeout_ms=TIMEOUT_MS, producer_id=-1,
                producer_epoch=-1,
            ),
        )
        for node in (*brokers.nodes, *brokers.nodes)
    ]  # fmt: skip
    for one in found:
        check("InitProducerId", one.error_code)
    ids = [one.producer_id for one in found]
    epochs = {one.producer_epoch for one in found}
    return brokers.nodes[0], "each its own" if len(set(ids)) == len(ids) and epochs == {0} else (
        f"{ids} with {epochs}"
    )


def _aborted(brokers: Brokers, name: str) -> Told:
    """What a reader of committed records is told to leave out: of a transaction that was committed,
    of one that was aborted, after both. (Each batch has a segment of its own, as its time is years
    before its marker's.)"""
    leader, _ = led(brokers, name)
    one = begun(brokers, name)
    for number, commit in enumerate((True, False)):
        check("AddPartitionsToTxn", max(one.add({name: [0]})))
        data = batch(b"x", transactional=True, producer=(one.id, one.epoch), sequence=number)
        told = produce(brokers, leader, name, 0, data, transactional_id=name)
        check("Produce", appended(told).error_code)
        check("EndTxn", one.end(commit=commit))
        one.settled("CompleteCommit" if commit else "CompleteAbort")
    found = []
    for at in (0, 2, 4):
        (part,) = parts_of(fetch(brokers, leader, name, {0: at}, committed=True))
        gone = [
            f"{'its' if told.producer_id == one.id else told.producer_id} from {told.first_offset}"
            for told in part.aborted_transactions
        ]
        found.append(" ".join(gone) or "none")
    return leader, ", ".join(found)


def _positions(brokers: Brokers, name: str) -> Told:
    """Positions of two partitions: before the end, after a commit, after an abort."""
    led(brokers, name, 2)
    reader, one = member(brokers, name), begun(brokers, name)
    told = []
    for turn, commit in enumerate((True, False)):
        one.move(name, name, {0: 10 + turn, 1: 20 + turn})
        told.append(reader.positions())
        check("EndTxn", one.end(commit=commit))
        one.settled("CompleteCommit" if commit else "CompleteAbort")
        told.append(reader.positions())
    return reader.node, "; ".join(told)


TRANSACTIONS = (
    Question(
        about=f"transactions longer than transaction.max.timeout.ms, of no length, of "
        f"{MOST_TRANSACTION_MS} ms",
        answer="InvalidTransactionTimeout, InvalidTransactionTimeout, No",
        ask=_too_long,
    ),
    Question(
        about=f"a transaction of {LONG_MS} ms that takes in partitions for longer",
        answer="ProducerFenced",
        ask=_kept_alive,
    ),
    Question(
        about="what is told of a transaction over two partitions, while it lasts and afterwards",
        answer=f"Ongoing {TIMEOUT_MS} [0, 1] Ongoing [0, 0], all 2, committed 0, CompleteCommit, "
        "[0, 1, 2, 2], [2, 2]",
        ask=_whole,
    ),
    Question(
        about="what a producer may do that was shut out, and what its successor has",
        answer="0 1, ProducerFenced, ProducerFenced, ProducerFenced",
        ask=_shut_out,
    ),
    Question(
        about="AddPartitionsToTxn of a partition that there is, and one that there is not",
        answer="OperationNotAttempted, UnknownTopicOrPartition",
        ask=_unknown_partition,
    ),
    Question(
        about="EndTxn of a transaction that nobody began",
        answer="InvalidTxnState",
        ask=_nothing_to_end,
    ),
    Question(about="the ids that all brokers give to producers", answer="each its own", ask=_ids),
    Question(
        about="aborted transactions that readers of committed records are told: before, at, after",
        answer="none, its from 2, none",
        ask=_aborted,
    ),
    Question(
        about="positions in a transaction: before and after its commit, and its abort",
        answer="none; 0:10 1:20; 0:10 1:20; 0:10 1:20",
        ask=_positions,
    ),
)
