"""Lost answers of other brokers and of clients, and requests that arrive twice or too late."""

from __future__ import annotations

import sys
from typing import Any

from urteil.suites.mutants.declaration import mutant
from urteil.suites.mutants.patching import Function, Mark, replace
from urteil.suites.mutants.unsimulated import NOT_FOUND, UNREACHED


@mutant(
    about="a leader that gets no answer to an AlterPartition withdraws the ISR that it proposed",
    models="KIP-497 without the unknown outcome: an answer's loss handled as a refusal",
    scenario="protocol-isr",
    guarantee="lost_write",
    unsimulated="no link between brokers loses a single answer",
)
def lost_answer_is_refusal(mark: Mark) -> None:
    """Rolls every pending proposal back when the controller does not answer."""

    def make(original: Function) -> Function:
        async def drain(proposals: Any) -> None:
            send = proposals._ask

            async def send_once(request: Any) -> Any:
                try:
                    return await send(request)
                except (ConnectionError, TimeoutError):
                    for proposal in proposals._pending.values():
                        mark.hit()
                        proposal.partition.roll_back_isr(proposal.isr, proposals._now_ms())
                    raise

            proposals._ask = send_once
            try:
                await original(proposals)
            finally:
                proposals._ask = send

        return drain

    replace("urteil.broker.replication.isr_proposals:IsrProposals._drain", make)


@mutant(
    about="the controller refuses an AlterPartition that it has written already and that is sent "
    "again with the same partition epoch",
    models="AlterPartition retried with a stale epoch (KAFKA-14144)",
    scenario="protocol-answers",
    guarantee="slow_recovery",
    unsimulated=UNREACHED,
)
def stale_partition_epoch_refused(mark: Mark) -> None:
    """Compares the partition epoch before it compares the ISR."""
    from urteil.broker.wire.errors import ErrorCode

    def make(original: Function) -> Function:
        def evaluate(context: Any, leader: int, tp: Any, proposal: Any, version: int) -> Any:
            result = original(context, leader, tp, proposal, version)
            now = context.states.get(tp)
            if result is now and now is not None and proposal.partition_epoch < now.partition_epoch:
                mark.hit()
                return ErrorCode.INVALID_UPDATE_VERSION
            return result

        return evaluate

    replace("urteil.broker.controller.isr_changes:_evaluate", make)


@mutant(
    about="a marker that arrives a second time ends the oldest open transaction of its log",
    models="WriteTxnMarkers applied twice: a count of open transactions that each marker lowers",
    scenario="protocol-markers",
    guarantee="precommitted_read",
)
def marker_applied_twice(mark: Mark) -> None:
    """Forgets the first open transaction at a marker of a producer that has none."""

    def make(original: Function) -> Function:
        def add_marker(staged: Any, entry: Any, header: Any, offset: int, data: Any) -> Any:
            is_repeated = entry.txn_first_offset is None and entry.coordinator_epoch >= 0
            refusal = original(staged, entry, header, offset, data)
            ongoing = staged._producers._ongoing
            if is_repeated and refusal is None and ongoing:
                mark.hit()
                del ongoing[min(ongoing)]
            return refusal

        return add_marker

    replace("urteil.broker.log.producer_states:StagedBatches._add_marker", make)


@mutant(
    about="a coordinator that loses its partition while a commit waits for the followers "
    "acknowledges the commit",
    models="a commit acknowledged by a deposed coordinator",
    scenario="protocol-deposed",
    guarantee="commit_went_back",
)
def deposed_coordinator_acknowledges(mark: Mark) -> None:
    """Answers a commit that was appended and whose partition has another leader now as stored.

    `commit_register` reports a register's first break only, and that one is permitted if a deposed
    coordinator may have answered."""
    from urteil.broker.wire.errors import ErrorCode

    def make(original: Function) -> Function:
        async def append(groups: Any, *args: Any, **kwargs: Any) -> Any:
            error = await original(groups, *args, **kwargs)
            if error is ErrorCode.NOT_COORDINATOR and kwargs.get("errors") is None:
                mark.hit()
                return ErrorCode.NONE
            return error

        return append

    replace("urteil.broker.groups.coordinator:GroupCoordinator.append", make)


@mutant(
    about="after a Fetch without an answer a follower's new session lacks a partition",
    models="KIP-227: a fetch session that forgets a partition when an answer is lost",
    scenario="protocol-answers",
    guarantee="slow_recovery",
    unsimulated=NOT_FOUND,
)
def session_forgets_partition(mark: Mark) -> None:
    """Omits the first partition from the first request after a timeout, and counts it as sent."""
    lost: set[int] = set()

    def make_failure(original: Function) -> Function:
        def on_failure(session: Any) -> None:
            original(session)
            if isinstance(sys.exception(), TimeoutError):
                lost.add(id(session))

        return on_failure

    def make_request(original: Function) -> Function:
        def request(session: Any, *args: Any) -> Any:
            built = original(session, *args)
            if id(session) in lost and built.topics:
                lost.discard(id(session))
                mark.hit()
                del built.topics[0].partitions[0]
            return built

        return request

    where = "urteil.broker.replication.fetch_session_client:FetchSessionClient."
    replace(where + "on_failure", make_failure)
    replace(where + "request", make_request)
