"""Transactions whose coordinator or partitions move, are unavailable or are deleted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.conformance.conftest import Pair
from tests.conformance.fetching import fetch
from tests.conformance.moves import is_deleted, next_leader
from tests.conformance.side import Side
from tests.conformance.test_partitions import alter, partitions
from tests.conformance.transactions import (
    Txn,
    add,
    begin,
    coordinator,
    end,
    init_request,
    wait_until_settled,
)
from urteil.broker.base.coordinator_partition import partition_for
from urteil.broker.wire.batches import iter_batches, iter_records
from urteil.broker.wire.messages import (
    DeleteTopicsRequest,
    DescribeProducersRequest,
    DescribeTransactionsRequest,
)

pytestmark = pytest.mark.thorough

STATE = "__transaction_state"


def test_moved_coordinator_loads_every_transaction(pair: Pair) -> None:
    """The old coordinator has nothing, the new one everything."""
    topic, names = pair.name("moved"), [pair.name(kind) for kind in ("open", "over", "fresh")]

    def ask(side: Side) -> list[Any]:
        side.create(topic, [(1,), (2,)])
        opened, over, _ = txns = [begin(side, name) for name in names]
        for txn in (opened, over):
            add(side, txn, (topic, 0))
            side.get(txn.produce(topic, txn.records(0)), 9)
        end(side, over, commit=False)
        answers: list[Any] = []
        for txn in txns:
            then = _move_coordinator(side, txn)
            for to in (txn.at, then.at):
                answers.append(_state(side, txn, to=to))
                answers.append(side.ask(txn.add((topic, 1)), 3, to=to))
                answers.append(side.ask(txn.add_offsets("a group"), 3, to=to))
                answers.append(_state(side, txn, to=to))
            answers.append(side.ask(txn.produce(topic, txn.records(0), partition=1), 9, to=2))
            for commit in (True, False, True):
                answers += [side.ask(txn.end(commit=commit), 3, to=to) for to in (txn.at, then.at)]
                wait_until_settled(side, then)
            answers.append(begin(side, txn.name).epoch)
        return [*answers, _log(side, topic, 0, to=1), _log(side, topic, 1, to=2)]

    pair.assert_same(ask)


def test_returning_producer_aborts_its_open_transaction(pair: Pair) -> None:
    """The coordinator and the partition fence the earlier producer."""
    topic, name = pair.name("moved"), pair.name("open")

    def ask(side: Side) -> list[Any]:
        side.create(topic, [(1,)])
        txn = begin(side, name)
        add(side, txn, (topic, 0))
        side.get(txn.produce(topic, txn.records(0)), 9)
        then = _move_coordinator(side, txn)
        answers = [side.ask(init_request(name), 4, to=then.at)["error_code"]]
        answers.append(begin(side, name).epoch)
        answers += [side.ask(txn.add((topic, 0)), 3, to=then.at), _state(side, txn, to=then.at)]
        answers.append(side.ask(txn.end(commit=True), 3, to=then.at))
        answers.append(side.ask(txn.produce(topic, txn.records(1)), 9))
        return [*answers, _log(side, topic, 0, to=1)]

    pair.assert_same(ask)


def test_next_leader_restores_transaction_state(pair: Pair) -> None:
    """The next leader has open and aborted transactions and the producers' states."""
    topic, names = pair.name("moved"), [pair.name(kind) for kind in ("open", "over", "stranger")]

    def ask(side: Side) -> list[Any]:
        side.create(topic, [(2, 3)])
        opened, over, stranger = (begin(side, name) for name in names)
        for txn in (over, opened):
            add(side, txn, (topic, 0))
            side.get(txn.produce(topic, txn.records(0)), 9, to=2)
        end(side, over, commit=False)
        next_leader(side, topic, 0)
        answers = [_producers(side, topic, to=3), _bounds(side, topic, to=3)]
        answers.append(side.ask(stranger.produce(topic, stranger.records(0)), 9, to=3))
        answers.append(side.ask(over.produce(topic, over.records(1)), 9, to=3))
        for sequence in (0, 1, 3):
            answers.append(side.ask(opened.produce(topic, opened.records(sequence)), 9, to=3))
        answers.append(side.ask(opened.produce(topic, opened.records(2)), 9, to=2))
        end(side, opened, commit=True)
        answers += [_producers(side, topic, to=3), _bounds(side, topic, to=3)]
        return [*answers, _log(side, topic, 0, to=3)]

    pair.assert_same(ask)


@pytest.mark.parametrize("again", [False, True], ids=["for good", "and made again"])
def test_deleted_topic_does_not_block_its_transaction(pair: Pair, again: bool) -> None:
    """The transaction completes on its other partitions."""
    gone, stays, name = pair.name("gone"), pair.name("stays"), pair.name("both")

    def ask(side: Side) -> list[Any]:
        for topic in (gone, stays):
            side.create(topic, [(1,)])
        txn = begin(side, name)
        add(side, txn, (gone, 0), (stays, 0))
        for topic in (gone, stays):
            side.get(txn.produce(topic, txn.records(0)), 9)
        request = DeleteTopicsRequest(topic_names=[gone], timeout_ms=10_000)
        answers = [side.ask(request, 5, to=side.controller())]
        side.until(lambda: is_deleted(side, gone))
        if again:
            side.create(gone, [(1,)])
            answers.append(side.ask(txn.produce(gone, txn.records(1)), 9))
        answers += [_state(side, txn, to=txn.at), side.ask(txn.add((gone, 0)), 3, to=txn.at)]
        answers.append(side.ask(txn.end(commit=True), 3, to=txn.at))
        wait_until_settled(side, txn)
        answers += [_state(side, txn, to=txn.at), _log(side, stays, 0, to=1)]
        return [*answers, _log(side, gone, 0, to=1)] if again else answers

    pair.assert_same(ask)


@pytest.mark.parametrize("moves", [False, True], ids=["waited for", "waited for by the next"])
def test_unavailable_partition_delays_the_end_of_a_transaction(pair: Pair, moves: bool) -> None:
    """The end is decided, and completes when the partition is available again."""
    topic, name = pair.name("away"), pair.name("waits")

    def ask(side: Side) -> list[Any]:
        with _unavailable_partition(side, topic, name, moves=moves) as txn:
            answers = [side.ask(txn.end(commit=commit), 3, to=txn.at) for commit in (True, False)]
            answers.append(_state(side, txn, to=txn.at))
            answers.append(side.ask(init_request(name), 4, to=txn.at)["error_code"])
            answers.append(side.ask(txn.add((topic, 1)), 3, to=txn.at))
            answers.append(side.ask(txn.add_offsets("a group"), 3, to=txn.at))
        wait_until_settled(side, txn)
        answers += [_state(side, txn, to=txn.at), begin(side, name).epoch]
        return [
            *answers,
            _log(side, topic, 0, to=_leader(side, topic, 0)),
            _log(side, topic, 1, to=1),
        ]

    pair.assert_same(ask)


@contextmanager
def _unavailable_partition(side: Side, topic: str, name: str, *, moves: bool) -> Iterator[Txn]:
    """A commit that was begun while the one replica of one of its partitions is down."""
    txn = begin(side, name)
    away = 3 if txn.at != 3 else 2
    if moves:
        alter(side, {_place(side, txn): [txn.at, 6 - txn.at - away, away]})
    side.create(topic, [(away,), (1,)])
    add(side, txn, (topic, 0), (topic, 1))
    for partition, to in ((0, away), (1, 1)):
        side.get(txn.produce(topic, txn.records(0), partition=partition), 9, to=to)
    with side.without_brokers(away):
        side.until(lambda: _leader(side, topic, 0) == -1)
        assert side.ask(txn.end(commit=True), 3, to=txn.at)["error_code"] == "NONE"
        side.until(lambda: len(_log(side, topic, 1, to=1)) == 2)
        yield _move_coordinator(side, txn) if moves else txn


def _leader(side: Side, topic: str, index: int) -> int:
    return int(partitions(side, topic, to=1)["partitions"][index]["leader_id"])


def _place(side: Side, txn: Txn) -> tuple[str, int]:
    """Where the transaction is stored."""
    return STATE, partition_for(txn.name, len(partitions(side, STATE)["partitions"]))


def _move_coordinator(side: Side, txn: Txn) -> Txn:
    then = txn.other(at=next_leader(side, *_place(side, txn)))
    side.until(lambda: coordinator(side, txn.name) == then.at)
    side.until(lambda: _state(side, then, to=then.at)["error_code"] == "NONE")
    return then


def _state(side: Side, txn: Txn, *, to: int) -> Any:
    request = DescribeTransactionsRequest(transactional_ids=[txn.name])
    (answer,) = side.ask(request, 0, to=to)["transaction_states"]
    began = answer.pop("transaction_start_time_ms")
    answer["began"] = began if began <= 0 else "some time"
    answer["producer_id"] -= txn.producer_id
    answer["topics"].sort(key=lambda topic: topic["topic"])
    for topic in answer["topics"]:
        topic["partitions"].sort()
    return answer


def _producers(side: Side, topic: str, *, to: int) -> Any:
    kind = DescribeProducersRequest.TopicRequest
    request = DescribeProducersRequest(topics=[kind(name=topic, partition_indexes=[0])])
    (partition,) = side.ask(request, 0, to=to)["topics"][0]["partitions"]
    left_out = ("producer_id", "last_timestamp", "coordinator_epoch")
    producers = [
        {name: value for name, value in producer.items() if name not in left_out}
        for producer in partition["active_producers"]
    ]
    # Not by producer id: each coordinator has its own block of ids, and who coordinates differs.
    return sorted(producers, key=lambda producer: sorted(producer.items()))


def _bounds(side: Side, topic: str, *, to: int) -> Any:
    answer = fetch(side, 11, topic, [{"fetch_offset": 0}], isolation_level=1, to=to)
    (bounds,) = answer["responses"][0]["partitions"]
    aborted = [txn["first_offset"] for txn in bounds["aborted_transactions"] or ()]
    return bounds["high_watermark"], bounds["last_stable_offset"], aborted


def _log(side: Side, topic: str, index: int, *, to: int) -> list[Any]:
    answer = fetch(side, 11, topic, [{"partition": index}], to=to)
    data = answer["responses"][0]["partitions"][0]["records"] or b""
    return [
        (
            header.base_offset, header.producer_epoch, header.base_sequence, header.is_control,
            [record.key if header.is_control else record.value for record in iter_records(part)],
        )
        for header, part in iter_batches(data)
    ]  # fmt: skip
