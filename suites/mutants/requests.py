"""Mutants of request handling: authorisation, quotas, stable offsets, hints, order of responses."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.declaration import mutant
from urteil.suites.mutants.patching import Function, Mark, replace
from urteil.suites.mutants.unsimulated import QUOTAS, SECURITY


@mutant(
    about="DeleteRecords is carried out for any client",
    models="an API without authorisation",
    scenario="rights",
    guarantee="unauthorised",
    unsimulated=SECURITY,
)
def delete_records_unauthorised(mark: Mark) -> None:
    """Counts all topics of a DeleteRecords request as authorised."""

    def make(original: Function) -> Function:
        def allowed_names(
            broker: Any, context: Any, operation: Any, type: Any, names: Any, **options: Any
        ) -> Any:
            if original(broker, context, operation, type, names, **options) != set(names):
                mark.hit()
            return names

        return allowed_names

    replace("urteil.broker.api.delete_records:allowed_names", make)


@mutant(
    about="the producer quota is measured and delays no client",
    models="a quota that is measured and not enforced",
    scenario="quotas",
    guarantee="quota_exceeded",
    unsimulated=QUOTAS,
)
def produce_unthrottled(mark: Mark) -> None:
    """Returns no delay for the producer quota."""

    def make(original: Function) -> Function:
        def wait_of(throttle: Any, context: Any, body: Any, size_bytes: int, spent_s: float) -> int:
            if original(throttle, context, body, size_bytes, spent_s):
                mark.hit()
            return 0

        return wait_of

    replace("urteil.broker.api.dispatch:wait_of", make)


@mutant(
    about="the consumer quota counts no bytes and delays no client",
    models="a quota that is measured and not enforced",
    scenario="quotas",
    guarantee="quota_exceeded",
    unsimulated=QUOTAS,
)
def fetches_unthrottled(mark: Mark) -> None:
    """Records no fetched bytes for the consumer quota."""

    def make_wait(original: Function) -> Function:
        def fetch_wait_ms(broker: Any, context: Any, size_bytes: int) -> int:
            if original(broker, context, size_bytes):
                mark.hit()
            return 0

        return fetch_wait_ms

    def make_at_once(_: Function) -> Function:
        def fetch_at_once(broker: Any, context: Any, max_bytes: int) -> int:
            return max_bytes

        return fetch_at_once

    replace("urteil.broker.api.fetch:fetch_wait_ms", make_wait)
    replace("urteil.broker.api.fetch:fetch_at_once", make_at_once)


@mutant(
    about="OffsetFetch with require_stable returns offsets that an open transaction may change",
    models="KIP-447, KAFKA-9346: require_stable ignored",
    scenario="paused-copier",
    guarantee="commit_register",
    mix="transactions",
)
def require_stable_ignored(mark: Mark) -> None:
    """Answers every request as one without require_stable."""

    def make(original: Function) -> Function:
        def positions(broker: Any, group_id: str, topics: Any, require_stable: bool) -> Any:
            if require_stable:
                mark.hit()
            return original(broker, group_id, topics, False)

        return positions

    replace("urteil.broker.api.group_offsets:_positions", make)


@mutant(
    about="AddPartitionsToTxn and EndTxn are carried out for any client",
    models="APIs without authorisation",
    scenario="rights",
    guarantee="unauthorised",
    unsimulated=SECURITY,
)
def transactions_unauthorised(mark: Mark) -> None:
    """Counts all transactional ids as authorised."""

    def make(original: Function) -> Function:
        def may_write(broker: Any, context: Any, transactional_id: str) -> bool:
            if not original(broker, context, transactional_id):
                mark.hit()
            return True

        return may_write

    replace("urteil.broker.api.transactions:_may_write", make)


@mutant(
    about="NOT_LEADER_OR_FOLLOWER answers name the answering broker as the leader",
    models="KIP-951: a wrong hint",
    scenario="known-answers",
    guarantee="wrong_answer",
)
def wrong_leader_hint(mark: Mark) -> None:
    """Returns the broker's own id as the leader hint."""

    def make(original: Function) -> Function:
        def find(hints: Any, topic: str, partition: int, error: Any) -> tuple[int, int]:
            leader, epoch = original(hints, topic, partition, error)
            if leader < 0:
                return leader, epoch
            mark.hit()
            return hints._broker.config.broker_id, epoch

        return find

    replace("urteil.broker.api.leader_hints:_Hints.find", make)


@mutant(
    about="TxnOffsetCommit is answered with UNKNOWN_MEMBER_ID",
    models="a group coordinator that looks for members in the wrong place",
    scenario="transactions-calm",
    guarantee="no_progress",
    mix="transactions",
)
def txn_offset_commit_rejected(mark: Mark) -> None:
    """Finds no member for a TxnOffsetCommit."""
    from urteil.broker.wire.errors import ErrorCode

    def make(_original: Function) -> Function:
        async def commit(*_arguments: Any, **_options: Any) -> Any:
            mark.hit()
            return ErrorCode.UNKNOWN_MEMBER_ID

        return commit

    replace("urteil.broker.api.txn_offset_commit:_commit", make)


@mutant(
    about="responses on one connection overtake each other",
    models="pipelined commits that are answered out of order",
    scenario="known-answers",
    guarantee="wrong_answer",
)
def responses_reordered(mark: Mark) -> None:
    """Sends each response without waiting for those of earlier requests."""
    import asyncio

    from urteil.broker.net.connection import Hangup

    def make(_: Function) -> Function:
        async def serve(connection: Any) -> None:
            async def answer(frame: Any) -> None:
                try:
                    await connection._send(await connection.answer(connection, frame))
                except (Hangup, ConnectionError, RuntimeError):  # another task closed the transport
                    connection.close()

            running = set()
            try:
                while True:
                    task = asyncio.ensure_future(answer(await connection._next_frame()))
                    running.add(task)
                    task.add_done_callback(running.discard)
                    if len(running) > 1:
                        mark.hit()
            except Exception:
                connection.close()

        return serve

    replace("urteil.broker.net.connection:Connection._serve", make)
