"""A transactional producer by raw requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tests.conformance.questions.registry import Asker
from tests.conformance.records import batch
from tests.conformance.side import CLOSED, Side
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    DescribeTransactionsRequest,
    EndTxnRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    ProduceRequest,
    TxnOffsetCommitRequest,
)

Places = Sequence[tuple[str, int]]
TIMEOUT_MS = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Txn:
    """A transactional id as its producer knows it, and where its coordinator is."""

    name: str
    producer_id: int
    epoch: int
    at: int

    def other(self, **changes: Any) -> Txn:
        return replace(self, **changes)

    @property
    def _common(self) -> dict[str, Any]:
        return {
            "transactional_id": self.name,
            "producer_id": self.producer_id,
            "producer_epoch": self.epoch,
        }

    def add(self, *places: tuple[str, int]) -> AddPartitionsToTxnRequest:
        """For versions 0 to 3."""
        common = {f"v3_and_below_{name}": value for name, value in self._common.items()}
        return AddPartitionsToTxnRequest(**common, v3_and_below_topics=_topics(places))

    def claim(
        self, *places: tuple[str, int], verify: bool
    ) -> AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction:
        """One of several, for version 4 and later."""
        return AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction(
            **self._common, verify_only=verify, topics=_topics(places)
        )

    def add_offsets(self, group: str) -> AddOffsetsToTxnRequest:
        return AddOffsetsToTxnRequest(**self._common, group_id=group)

    def end(self, *, commit: bool) -> EndTxnRequest:
        return EndTxnRequest(**self._common, committed=commit)

    def records(self, sequence: int, count: int = 1, *, transactional: bool = True) -> bytes:
        return batch(
            [b"v%d" % (sequence + n) for n in range(count)],
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
            transactional=transactional,
        )

    def produce(
        self, topic: str, records: bytes, *, partition: int = 0, named: bool = True
    ) -> ProduceRequest:
        return ProduceRequest(
            transactional_id=self.name if named else None,
            acks=-1,
            timeout_ms=20_000,
            topic_data=[
                ProduceRequest.TopicProduceData(
                    name=topic,
                    partition_data=[
                        ProduceRequest.PartitionProduceData(index=partition, records=records)
                    ],
                )
            ],
        )

    def commit_offsets(
        self, group: str, offsets: Mapping[tuple[str, int], int], **more: Any
    ) -> TxnOffsetCommitRequest:
        kind = TxnOffsetCommitRequest
        return kind(
            **self._common,
            group_id=group,
            topics=[
                kind.TxnOffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        kind.TxnOffsetCommitRequestPartition(
                            partition_index=index, committed_offset=offset, committed_metadata="m"
                        )
                    ],
                )
                for (topic, index), offset in offsets.items()
            ],
            **more,
        )


def _topics(places: Places) -> list[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic]:
    return [
        AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(
            name=topic, partitions=[index for name, index in places if name == topic]
        )
        for topic in dict.fromkeys(name for name, _ in places)
    ]


def coordinator(side: Side, name: str) -> int:
    """The broker that coordinates a transactional id, once it says so itself."""
    ids: list[int] = []
    known = DescribeTransactionsRequest(transactional_ids=[name])

    def ready() -> bool:
        answer = side.get(FindCoordinatorRequest(key=name, key_type=1), 1)
        ids[:] = [answer.node_id]
        if answer.error_code != ErrorCode.NONE:
            return False
        said = side.get(known, 0, to=answer.node_id)
        return said != CLOSED and said.transaction_states[0].error_code not in NOT_YET

    side.until(ready)
    return ids[0]


def init_request(name: str, known: tuple[int, int] = (-1, -1)) -> InitProducerIdRequest:
    return InitProducerIdRequest(
        transactional_id=name,
        transaction_timeout_ms=TIMEOUT_MS,
        producer_id=known[0],
        producer_epoch=known[1],
    )


NOT_YET = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
)
AGAIN = (*NOT_YET, ErrorCode.CONCURRENT_TRANSACTIONS)


def begin(side: Side, name: str) -> Txn:
    """A producer with a fresh epoch."""
    at = coordinator(side, name)
    answers: list[Any] = []

    def ready() -> bool:
        answers[:] = [side.get(init_request(name), 4, to=at)]
        return answers[0].error_code not in AGAIN

    side.until(ready)
    (answer,) = answers
    assert answer.error_code == ErrorCode.NONE, answer
    return Txn(name=name, producer_id=answer.producer_id, epoch=answer.producer_epoch, at=at)


def new_producer(asker: Asker, **changes: Any) -> Txn:
    """A producer of this question's own, or one that is nearly it: asked where it belongs."""
    txn = begin(asker.side, asker.name("txn")).other(**changes)
    return txn if not changes else txn.other(at=coordinator(asker.side, txn.name))


def add(side: Side, txn: Txn, *places: tuple[str, int]) -> None:
    """Partitions join, once an earlier transaction is over."""
    wait_until_settled(side, txn)
    side.ask(txn.add(*places), 3, to=txn.at)


def end(side: Side, txn: Txn, *, commit: bool) -> None:
    """The end, with its markers in the logs."""
    side.ask(txn.end(commit=commit), 3, to=txn.at)
    wait_until_settled(side, txn)


def wait_until_settled(side: Side, txn: Txn) -> None:
    """Until no markers are on their way."""

    def is_settled() -> bool:
        answer = side.get(DescribeTransactionsRequest(transactional_ids=[txn.name]), 0, to=txn.at)
        return not answer.transaction_states[0].transaction_state.startswith("Prepare")

    side.until(is_settled)
