"""The coordinator over a real log: what is not over yet, and what an earlier term left."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.broker.net.raw import run
from tests.broker.replication.hosting import Hosting
from tests.waiting import LONG_S, wait_until
from urteil.broker.replication.partition import Partition
from urteil.broker.transactions.coordinator import TRANSACTIONS_TOPIC, TransactionCoordinator
from urteil.broker.transactions.marker_sender import Marker, MarkerSender, Order, Outcome
from urteil.broker.transactions.records import encode_key, encode_value
from urteil.broker.transactions.transaction import TxnMetadata, TxnState
from urteil.broker.wire.batches import build_batch
from urteil.broker.wire.errors import ErrorCode

TIMEOUT_MS = 1000
EXPIRED_MS = 10_000
DATA = ("a", 0)


class Coordinating:
    """Broker 1 with the only partition of the transactions' topic; needs a running loop."""

    def __init__(self, folder: Path) -> None:
        self.hosting = Hosting([folder])
        self.metadata = self.hosting.metadata
        self.written: list[Order] = []
        config: Any = SimpleNamespace(
            broker_id=1,
            request_timeout_ms=60_000,
            transaction_state_log_num_partitions=1,
            transaction_max_timeout_ms=60_000,
            transactional_id_expiration_ms=EXPIRED_MS,
        )
        self.markers = markers_to(self.write, self.hosting)
        clock: Any = self.hosting.clock
        nobody: Any = None
        self.coordinator = TransactionCoordinator(
            config, self.hosting.replicas, self.metadata, clock, nobody, self.markers
        )

    async def write(self, orders: Sequence[Order]) -> list[Outcome]:
        self.written += orders
        return [dict.fromkeys(places, ErrorCode.NONE) for _, places in orders]

    def lead(self, epoch: int, **given: Any) -> Partition:
        """Take the leadership; the transactions are read when the loop gets to it."""
        assert self.hosting.lead(0, epoch=epoch, topic=TRANSACTIONS_TOPIC, **given) == 0
        partition = self.hosting.replicas.partition(TRANSACTIONS_TOPIC, 0)
        assert partition is not None
        return partition

    def lead_again(self, epoch: int, **given: Any) -> Partition:
        """Take the leadership after the epoch before, in which nobody had it."""
        self.lead(epoch - 1, leader=-1, **given)
        return self.lead(epoch, **given)

    def hear(self, *, epoch: int) -> None:
        """What the controller says of the topics."""
        self.hosting.announce_topic(TRANSACTIONS_TOPIC, epoch=epoch)
        self.hosting.announce_topic(DATA[0])

    async def store(self, transactional_id: str, state: TxnState) -> None:
        """What an earlier coordinator left in the log."""
        is_open = state in (TxnState.ONGOING, TxnState.PREPARE_COMMIT)
        now_ms = self.hosting.clock.now_ms()
        metadata = TxnMetadata(
            producer_id=7,
            producer_epoch=0,
            timeout_ms=TIMEOUT_MS,
            state=state,
            partitions=frozenset([DATA]) if is_open else frozenset(),
            started_ms=now_ms,
            updated_ms=now_ms,
        )
        await self.append(encode_key(transactional_id), encode_value(metadata))

    async def append(self, key: bytes, value: bytes) -> None:
        where = (TRANSACTIONS_TOPIC, 0)
        batch = memoryview(build_batch([(key, value, (), self.hosting.clock.now_ms())]))
        answers = await self.hosting.replicas.append(1000, 1, {where: batch}, internal=True)
        assert answers[where].error is ErrorCode.NONE

    def state(self, transactional_id: str) -> TxnState | None:
        _, description = self.coordinator.describe(transactional_id)
        return None if description is None else description.state

    def close(self) -> None:
        self.coordinator.stop()
        self.hosting.close()


def markers_to(write: Any, hosting: Hosting) -> MarkerSender:
    nobody: Any = None
    return MarkerSender(
        me=1,
        listener="PLAINTEXT",
        metadata=hosting.metadata,
        channels=nobody,
        write_here=write,
        timeout_ms=1000,
    )


async def steps() -> None:
    """Whatever can be done without waiting is done."""
    for _ in range(50):
        await asyncio.sleep(0)


@pytest.mark.parametrize("is_known", [False, True], ids=["nothing", "what was"])
def test_missing_metadata_deletes_no_marker_partition(tmp_path: Path, is_known: bool) -> None:
    """A new controller sends a broker its roles before the topics' metadata: of what this one
    has not heard yet it may have to end transactions."""

    async def scenario() -> None:
        here = Coordinating(tmp_path)
        if is_known:
            here.hosting.announce_topic(TRANSACTIONS_TOPIC)
        here.lead(0)
        await here.store("x", TxnState.PREPARE_COMMIT)
        here.lead_again(2)
        await steps()
        (transaction,) = here.coordinator._all_transactions()
        assert transaction[2].now.state is TxnState.PREPARE_COMMIT
        here.hear(epoch=2)
        await wait_until(lambda: here.state("x") is TxnState.COMPLETE_COMMIT)
        assert [places for _, places in here.written] == [(DATA,)]
        here.close()

    run(scenario())


@pytest.mark.parametrize(("key", "value"), [(b"", b"x"), (encode_key("z"), b"x")])
def test_unreadable_record_hides_no_other_transactional_id(
    tmp_path: Path, key: bytes, value: bytes
) -> None:
    async def scenario() -> None:
        here = Coordinating(tmp_path)
        here.hear(epoch=9)
        here.lead(0)
        await here.append(key, value)
        await here.store("x", TxnState.EMPTY)
        here.lead_again(2)
        await steps()
        assert here.state("x") is TxnState.EMPTY
        here.close()

    run(scenario())


def test_transactional_id_is_loading_until_the_partition_count_is_known(tmp_path: Path) -> None:
    """The setting is only for the topic that is made."""

    async def scenario() -> None:
        here = Coordinating(tmp_path)
        here.lead(0)
        await steps()
        assert here.coordinator.find("x") == (None, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        here.hosting.announce_topic(TRANSACTIONS_TOPIC, partitions=7)
        assert here.coordinator.find("x") == (None, ErrorCode.NOT_COORDINATOR)
        here.close()

    run(scenario())


def test_expiration_of_an_earlier_term_removes_nothing(tmp_path: Path) -> None:
    """While the first one's tombstone waits for replicas, all may be used again elsewhere."""

    async def scenario() -> None:
        here = Coordinating(tmp_path)
        here.hear(epoch=9)
        both = {"replicas": (1, 2)}
        partition = here.lead(0, **both)
        for transactional_id in "xy":
            await here.store(transactional_id, TxnState.EMPTY)
        here.lead_again(2, **both)
        await wait_until(lambda: here.state("y"))
        here.hosting.clock.ms += EXPIRED_MS
        removing = asyncio.ensure_future(here.coordinator._remove_expired())
        await wait_until(lambda: partition.log.log_end_offset == 3)
        here.lead_again(4, **both)
        await removing
        here.lead_again(6, **both)
        await wait_until(lambda: here.coordinator.find("y")[0])
        assert (here.state("x"), here.state("y")) == (None, TxnState.EMPTY)
        here.close()

    run(scenario())


def test_transaction_that_ends_before_the_abort_is_not_aborted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        here = Coordinating(tmp_path)
        here.hear(epoch=9)
        both = {"replicas": (1, 2)}
        partition = here.lead(0, **both)
        await here.store("x", TxnState.ONGOING)
        here.lead_again(2, **both)
        await wait_until(lambda: here.state("x"))
        here.hosting.clock.ms += TIMEOUT_MS + 1
        ending = asyncio.ensure_future(here.coordinator.end("x", 7, 0, commit=True))
        await here.coordinator._abort_overdue()
        await steps()
        partition.record_follower_fetch(2, partition.log.log_end_offset, 0, 0.0)
        assert await ending is ErrorCode.NONE
        here.close()

    with caplog.at_level(logging.ERROR):
        run(scenario())
    assert "a task failed" not in caplog.text


def test_failed_marker_is_sent_again(tmp_path: Path) -> None:
    """Else its transaction would never end."""

    async def scenario() -> None:
        hosting = Hosting([tmp_path])
        hosting.announce_topic(DATA[0])
        tries = []

        async def write(orders: Sequence[Order]) -> list[Outcome]:
            tries.append(orders)
            if len(tries) == 1:
                raise ValueError("an answer of a kind that nobody knows")
            return [{DATA: ErrorCode.NONE}]

        marker = Marker(producer_id=7, producer_epoch=0, commit=True, coordinator_epoch=0)
        async with asyncio.timeout(LONG_S):
            assert await markers_to(write, hosting).write(
                marker, [DATA], lambda: True, lambda _: None
            )
        hosting.close()

    run(scenario())


def test_leader_in_a_new_epoch_sends_markers_of_it(tmp_path: Path) -> None:
    """Another may have led in between, unheard of here, and sent some: older ones are refused, and
    the transaction would never end."""

    async def scenario() -> None:
        here = Coordinating(tmp_path)
        here.lead(0)
        await here.store("x", TxnState.ONGOING)
        here.lead_again(2)
        here.hear(epoch=4)
        await wait_until(lambda: here.state("x") is TxnState.ONGOING)
        here.lead(4)
        assert await here.coordinator.end("x", 7, 0, commit=True) is ErrorCode.NONE
        await wait_until(lambda: here.state("x") is TxnState.COMPLETE_COMMIT)
        assert [marker.coordinator_epoch for marker, _ in here.written] == [4]
        here.close()

    run(scenario())
