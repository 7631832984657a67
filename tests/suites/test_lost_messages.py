"""Mutants of lost, late and repeated messages fail a check that the broker passes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.broker.controller.test_isr_changes import TP, context, request
from tests.broker.groups.test_coordinator import Coordinating
from tests.broker.log.helpers import append, batch, end_txn, open_log
from tests.broker.net.raw import run
from tests.broker.replication.plain import Plain, state
from tests.broker.replication.test_fetch_session_client import pair
from tests.waiting import wait_until
from urteil.broker.controller.isr_changes import evaluate_proposals
from urteil.broker.groups.coordinator import OFFSETS_TOPIC
from urteil.broker.groups.records import OffsetCommitValue
from urteil.broker.replication.isr_proposals import IsrProposals
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    FetchRequest,
)
from urteil.suites.mutants import MUTANTS, patching
from urteil.suites.mutants.patching import Mark

Check = Callable[[Path], bool]


def unanswered_proposal_stays_in_flight(folder: Path) -> bool:
    plain = Plain(folder / "t-0")
    sent = 0

    async def lose_answer(_: AlterPartitionRequest) -> AlterPartitionResponse:
        nonlocal sent
        sent += 1
        if sent > 1:
            await asyncio.Event().wait()
        raise TimeoutError

    async def propose() -> bool:
        proposals = IsrProposals(1, lambda: 5, lose_answer, lambda: 0.0)
        plain.partition.propose = proposals.propose
        plain.partition.become_leader(state(1, 1, (1, 2)), 0.0)
        plain.partition.record_follower_fetch(2, 0, 0, 0.0, 8)
        plain.partition.record_follower_fetch(3, 0, 0, 0.0, 9)
        assert plain.partition.isr.is_in_flight
        await wait_until(lambda: sent > 1 or not plain.partition.isr.is_in_flight)
        is_in_flight = plain.partition.isr.is_in_flight
        proposals.close()
        return is_in_flight

    return asyncio.run(propose())


def repeated_proposal_is_answered(_: Path) -> bool:
    controller = context()
    first = request()
    controller.record(TP, evaluate_proposals(controller, first, 3).writes[TP])
    now = controller.states[TP]
    assert now.isr == (1, 2, 3)
    controller.record(TP, type(now)(**{**_fields(now), "partition_epoch": now.partition_epoch + 1}))
    return evaluate_proposals(controller, first, 3).answers[TP] == controller.states[TP]


def _fields(now: object) -> dict[str, object]:
    names = ("leader", "leader_epoch", "isr", "controller_epoch", "partition_epoch")
    return {name: getattr(now, name) for name in names}


def repeated_marker_ends_no_other_transaction(folder: Path) -> bool:
    log = open_log(folder)
    append(log, batch(producer=(1, 0, 0), transactional=True))
    append(log, batch(producer=(2, 0, 0), transactional=True))
    end_txn(log, 1, commit=True)
    end_txn(log, 1, commit=True)
    log.update_high_watermark(log.log_end_offset)
    return log.last_stable_offset == 1


def deposed_coordinator_refuses(folder: Path) -> bool:
    errors: list[ErrorCode] = []

    async def commit() -> None:
        here = Coordinating(folder)
        partition = here.lead(0, replicas=(1, 2))
        await wait_until(lambda: here.is_loaded)
        value = OffsetCommitValue(offset=42)
        waiting = asyncio.ensure_future(here.groups.commit("g", "", None, -1, {("t", 0): value}))
        await wait_until(lambda: partition.log.log_end_offset)
        here.hosting.lead(0, epoch=1, leader=2, replicas=(1, 2), topic=OFFSETS_TOPIC)
        errors.append(await waiting)
        here.close()

    run(commit())
    return errors == [ErrorCode.NOT_COORDINATOR]


def new_session_has_every_partition(folder: Path) -> bool:
    leader, follower = pair(folder)
    follower.fetch(leader)
    try:
        raise TimeoutError
    except TimeoutError:
        follower.client.on_failure()
    built = follower.client.request([follower.following], FetchRequest())
    return sum(len(topic.partitions) for topic in built.topics) == 1


CHECKS: dict[str, Check] = {
    "lost_answer_is_refusal": unanswered_proposal_stays_in_flight,
    "stale_partition_epoch_refused": repeated_proposal_is_answered,
    "marker_applied_twice": repeated_marker_ends_no_other_transaction,
    "deposed_coordinator_acknowledges": deposed_coordinator_refuses,
    "session_forgets_partition": new_session_has_every_partition,
}


@pytest.fixture
def mutate() -> Iterator[Callable[[str, Path], None]]:
    """Apply a mutant for the length of a test."""
    yield lambda name, mark: MUTANTS[name].apply(Mark(mark))
    patching.undo()


@pytest.mark.parametrize(("name", "check"), CHECKS.items(), ids=list(CHECKS))
def test_mutant_fails_the_check_that_the_broker_passes(
    name: str, check: Check, tmp_path: Path, mutate: Callable[[str, Path], None]
) -> None:
    for kind in ("unmodified", "mutated"):
        if kind == "mutated":
            mutate(name, tmp_path / "mark")
        folder = tmp_path / kind
        folder.mkdir()
        assert check(folder) == (kind == "unmodified")
    assert (tmp_path / "mark").exists()
