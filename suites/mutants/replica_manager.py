"""Replicas of a broker and the controller's requests for them."""

from __future__ import annotations

import asyncio
from typing import Any
from weakref import WeakKeyDictionary

from urteil.suites.mutants.declaration import mutant
from urteil.suites.mutants.patching import Function, Mark, replace

CONTROL = "urteil.broker.replication.role_changes:RoleChanges"


@mutant(
    about="read_committed fetches use a high watermark that is newer than their open transactions",
    models="KAFKA-9807: a last stable offset computed from a high watermark that moved meanwhile",
    scenario="transactions",
    guarantee="aborted_read",
)
def hw_read_twice_in_read_committed(mark: Mark) -> None:
    """Uses the open transactions of the read before with the high watermark of now."""
    undisturbed: set[int] = set()

    def make(original: Function) -> Function:
        def upper_bound(partition: Any, terms: Any) -> Any:
            upto = original(partition, terms)
            if terms.is_follower or not terms.read_committed:
                return upto
            log, key = partition.log, id(partition)
            was_undisturbed = key in undisturbed
            is_undisturbed = upto == log.high_watermark
            undisturbed.add(key) if is_undisturbed else undisturbed.discard(key)
            if is_undisturbed or not was_undisturbed:
                return upto
            mark.hit()
            return log.high_watermark

        return upper_bound

    replace("urteil.broker.replication.fetch_reader:upper_bound", lambda original: original)
    replace("urteil.broker.replication.partition_read:upper_bound", make)


@mutant(
    about="a deposed leader ignores its successor and accepts writes",
    models="a stale leader that is not fenced",
    scenario="leader-moves",
    guarantee="two_leaders",
)
def stale_leader_accepts_writes(mark: Mark) -> None:
    """Ignores LeaderAndIsr requests that make a leader a follower."""

    def make(original: Function) -> Function:
        def follow(control: Any, partition: Any, state: Any, leaders: Any) -> None:
            if partition.is_leader:
                mark.hit()
                return
            original(control, partition, state, leaders)

        return follow

    def make_apply(_: Function) -> Function:
        def apply_metadata(control: Any, request: Any) -> None:
            return

        return apply_metadata

    replace("urteil.broker.replication.role_changes:RoleChanges._follow", make)
    replace("urteil.broker.replication.role_changes:RoleChanges.apply_metadata", make_apply)


@mutant(
    about="a broker obeys a controller request that was meant for its previous life",
    models="KAFKA-7235",
    scenario="late-metadata",
    guarantee="disagreement",
    unsimulated="no request of a controller is delayed beyond a restart",
)
def stale_control_request_after_bounce(mark: Mark) -> None:
    """Counts every broker epoch as the current one."""

    def make(original: Function) -> Function:
        def fence(control: Any, controller_epoch: int, broker_epoch: int) -> Any:
            if 0 <= broker_epoch < control._broker_epoch():
                mark.hit()
                broker_epoch = control._broker_epoch()
            return original(control, controller_epoch, broker_epoch)

        return fence

    replace("urteil.broker.replication.role_changes:RoleChanges.fence", make)


@mutant(
    about="a broker that becomes leader keeps reporting the previous leader to clients",
    models="KAFKA-7235: stale metadata on one broker",
    scenario="indexes",
    guarantee="disagreement",
)
def own_metadata_not_updated(mark: Mark) -> None:
    """Ignores UpdateMetadata entries of partitions that the broker leads."""
    led: WeakKeyDictionary[Any, set[tuple[str, int]]] = WeakKeyDictionary()  # by metadata cache

    def make_lead(original: Function) -> Function:
        def lead(control: Any, partition: Any, state: Any) -> None:
            led.setdefault(control._metadata, set()).add((partition.topic, partition.partition))
            original(control, partition, state)

        return lead

    def make_follow(original: Function) -> Function:
        def follow(control: Any, partition: Any, state: Any, leaders: Any) -> None:
            led.get(control._metadata, set()).discard((partition.topic, partition.partition))
            original(control, partition, state, leaders)

        return follow

    def make_update(original: Function) -> Function:
        def update(cache: Any, request: Any, states: Any = None) -> Any:
            before = {key: cache.partition(*key) for key in led.get(cache, ())}
            deleted = original(cache, request, states)
            for (topic, number), state in before.items():
                now = cache.partition(topic, number)
                if state is not None and now is not None and state.leader != now.leader:
                    mark.hit()
                    cache.topics[topic][number] = state
            return deleted

        return update

    replace(f"{CONTROL}._lead", make_lead)
    replace(f"{CONTROL}._follow", make_follow)
    replace("urteil.broker.replication.metadata_cache:MetadataCache.update", make_update)


@mutant(
    about="acks=all of several partitions is answered when one of them is replicated",
    models="a delayed produce request that completes with its first partition",
    scenario="shared-requests",
    guarantee="lost_write",
    unsimulated="no request has records of several partitions",
)
def one_partition_answers_for_all(mark: Mark) -> None:
    """Completes a produce request when one of its partitions is replicated."""

    def make(original: Function) -> Function:
        def look(waiting: Any) -> bool | None:
            before = len(waiting._waiting)
            done: bool | None = original(waiting)
            if done or len(waiting._waiting) == before:
                return done
            mark.hit()
            waiting._waiting.clear()
            return True

        return look

    replace("urteil.broker.replication.acknowledgement:Acknowledgement._update", make)


@mutant(
    about="acks=all is acknowledged when its timeout passes before the records are replicated",
    models="an expired delayed operation whose error is overwritten",
    scenario="isolate-leader",
    guarantee="end_below_ack",
)
def timeout_is_success(mark: Mark) -> None:
    """Removes the error of a produce request that timed out."""

    def make(original: Function) -> Function:
        def time_out(waiting: Any) -> bool:
            if waiting._waiting:
                mark.hit()
            waiting._waiting.clear()
            return bool(original(waiting))

        return time_out

    replace("urteil.broker.replication.acknowledgement:Acknowledgement._time_out", make)


@mutant(
    about="acks=all of a duplicate batch is acknowledged at once, before the batch is replicated",
    models="acks=all of a duplicate treated as acks=1",
    scenario="cut-successor",
    guarantee="lost_write",
)
def duplicate_not_replicated(mark: Mark) -> None:
    """Requires no replica for a duplicate."""

    def make(original: Function) -> Function:
        def look(waiting: Any) -> Any:
            for key in [key for key in waiting._waiting if waiting._results[key].duplicate]:
                mark.hit()
                del waiting._waiting[key]
            return original(waiting)

        return look

    replace("urteil.broker.replication.acknowledgement:Acknowledgement._update", make)


@mutant(
    about="a broker keeps the log of a replica that was moved away",
    models="a StopReplica request whose delete flag is lost",
    scenario="reassign",
    guarantee="leftover_log",
    mix="administration",
)
def moved_replica_not_deleted(mark: Mark) -> None:
    """Ignores the delete flag of StopReplica."""

    def make(original: Function) -> Function:
        def drop(replicas: Any, topic: str, partition: int, *, delete: bool) -> None:
            if delete:
                mark.hit()
            original(replicas, topic, partition, delete=False)

        return drop

    replace("urteil.broker.replication.replica_manager:ReplicaManager.drop", make)


@mutant(
    about="a waiting fetch of a consumer is not woken by new records",
    models="a purgatory whose watchers are never woken",
    scenario="known-answers",
    guarantee="wrong_answer",
)
def fetch_not_woken(mark: Mark) -> None:
    """Wakes no waiting consumer fetch before its timeout."""

    def make(original: Function) -> Function:
        async def wait(reader: Any, terms: Any, target: Any) -> None:
            if terms.is_follower:
                await original(reader, terms, target)
                return
            mark.hit()
            await asyncio.sleep(terms.max_wait_ms / 1000)

        return wait

    replace("urteil.broker.replication.fetch_reader:FetchReader._wait", make)
